package market

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

const (
	// MaxDecimalLength is the greatest number of characters of a literal that ParseDecimal accepts.
	MaxDecimalLength = 64
	// MaxDecimalExponent is the greatest absolute value of an exponent that ParseDecimal accepts.
	MaxDecimalExponent = 64
)

var (
	// exact never rounds sums and products, because precision 0 means unlimited precision.
	exact = apd.Context{MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent}
	// quotient rounds like IEEE 754 decimal128.
	quotient = apd.Context{Precision: 34, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}
	// wide is for operations for which apd requires a precision. It never rounds, because no result has 4096 digits.
	wide = apd.Context{Precision: 4096, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}
)

// Decimal is an exact base-10 number. It keeps all parsed digits, including trailing zeros. Sums, differences and products are
// exact; only Quo, QuoRound and Round round. The zero value is 0. A Decimal is immutable, can be copied, and is safe for
// concurrent use. Compare Decimals with Cmp, because == distinguishes 0.5 and 0.50.
type Decimal struct {
	// d must not change after the Decimal was returned, because copies may share the memory of its coefficient.
	d apd.Decimal
}

// ErrDecimal is wrapped by all errors of ParseDecimal.
var ErrDecimal = errors.New("not a decimal number")

// ParseDecimal parses a base-10 literal such as 0.65, -3, .5 or 1.5e-7. It rejects literals of more than MaxDecimalLength
// characters, exponents beyond ±MaxDecimalExponent, NaN and Infinity.
func ParseDecimal(s string) (Decimal, error) {
	if d, ok := parsePlain(s); ok {
		return d, nil
	}
	return parseLiteral(strings.Clone(s)) // only the clone escapes to the heap, so s can stay on the stack of the calling function
}

func parseLiteral(s string) (Decimal, error) {
	if len(s) > MaxDecimalLength {
		return Decimal{}, fmt.Errorf("%w: a literal of %d characters, at most %d are accepted", ErrDecimal, len(s), MaxDecimalLength)
	}
	if err := checkLiteral(s); err != nil {
		return Decimal{}, err
	}
	var r Decimal
	if _, _, err := r.d.SetString(s); err != nil {
		return Decimal{}, fmt.Errorf("%w: %q", ErrDecimal, s)
	}
	return r.tidy(), nil
}

// maxPlain is the number of digits that always fit an int64.
const maxPlain = 18

// parsePlain parses literals of at most maxPlain digits without an exponent or a plus sign. Nearly all literals have this form.
func parsePlain(s string) (d Decimal, ok bool) {
	unsigned := strings.TrimPrefix(s, "-")
	var coefficient int64
	digits, decimals := 0, -1 // decimals is -1 before the decimal point
	for i := range len(unsigned) {
		switch c := unsigned[i]; {
		case isDigit(c) && digits < maxPlain:
			coefficient = coefficient*10 + int64(c-'0')
			digits++
			if decimals >= 0 {
				decimals++
			}
		case c == '.' && decimals < 0:
			decimals = 0
		default:
			return Decimal{}, false
		}
	}
	if len(unsigned) < len(s) {
		coefficient = -coefficient
	}
	return NewDecimal(coefficient, -int32(max(decimals, 0))), digits > 0
}

// literals matches [+-]digits[.digits][e[+-]digits]. The digits on one side of the decimal point may be missing, and the sign may be
// a plus, because venues write such numbers in JSON strings.
var literals = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?$`)

// checkLiteral rejects NaN, Inf and large exponents, which apd accepts.
func checkLiteral(s string) error {
	parts := literals.FindStringSubmatch(s)
	if parts == nil {
		return fmt.Errorf("%w: %q", ErrDecimal, s)
	}
	if exponent, err := strconv.Atoi(cmp.Or(parts[1], "0")); err != nil || exponent < -MaxDecimalExponent || exponent > MaxDecimalExponent {
		return fmt.Errorf("%w: %q has an exponent beyond ±%d", ErrDecimal, s, MaxDecimalExponent)
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// MustDecimal is ParseDecimal for constants. It panics if the literal is invalid.
func MustDecimal(s string) Decimal {
	d, err := ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// NewDecimal returns coefficient × 10^exponent.
func NewDecimal(coefficient int64, exponent int32) Decimal {
	var r Decimal
	r.d.SetFinite(coefficient, exponent)
	return r.tidy()
}

// Add returns d + e, exactly.
func (d Decimal) Add(e Decimal) (r Decimal) {
	mustExact(exact.Add(&r.d, &d.d, &e.d))
	return r.tidy()
}

// Sub returns d − e, exactly.
func (d Decimal) Sub(e Decimal) (r Decimal) {
	mustExact(exact.Sub(&r.d, &d.d, &e.d))
	return r.tidy()
}

// Mul returns d × e, exactly.
func (d Decimal) Mul(e Decimal) (r Decimal) {
	mustExact(exact.Mul(&r.d, &d.d, &e.d))
	return r.tidy()
}

// Quo returns d / e, rounded half-even to at most 34 significant digits, without trailing zeros. ok is false if e is 0.
func (d Decimal) Quo(e Decimal) (r Decimal, ok bool) {
	if e.IsZero() {
		return Decimal{}, false
	}
	if _, err := quotient.Quo(&r.d, &d.d, &e.d); err != nil {
		return Decimal{}, false
	}
	return r.Reduce(), true
}

// QuoRound returns d / e, rounded half-even to the given number of decimals, without trailing zeros. ok is false if e is 0.
func (d Decimal) QuoRound(e Decimal, places int32) (r Decimal, ok bool) {
	if e.IsZero() {
		return Decimal{}, false
	}
	d.d.Exponent += places
	mustExact(wide.QuoInteger(&r.d, &d.d, &e.d))
	rest := d.Sub(r.Mul(e)).Abs() // the remainder decides how to round; Quo followed by Round would round twice
	switch half := rest.Add(rest).Cmp(e.Abs()); {
	case half > 0, half == 0 && r.d.Coeff.Bit(0) == 1:
		r = r.Add(NewDecimal(int64(d.Sign()*e.Sign()), 0))
	}
	r.d.Exponent -= places
	return r.Reduce(), true
}

// Round returns d, rounded half-even to the given number of decimals, without trailing zeros.
func (d Decimal) Round(places int32) (r Decimal) {
	if d.d.Exponent >= -places {
		return d.Reduce()
	}
	mustExact(wide.Quantize(&r.d, &d.d, -places))
	return r.Reduce()
}

// Reduce returns the same number without trailing zeros after the decimal point. Code that computes a Decimal reduces the result,
// but does not reduce values that the venue has sent.
func (d Decimal) Reduce() (r Decimal) {
	if d.d.Exponent >= 0 {
		return d.tidy()
	}
	r.d.Reduce(&d.d)
	if r.d.Exponent > 0 {
		mustExact(wide.Quantize(&r.d, &r.d, 0))
	}
	return r.tidy()
}

// Abs returns the absolute value of d.
func (d Decimal) Abs() (r Decimal) {
	r.d.Abs(&d.d)
	return r.tidy()
}

// Cmp returns -1, 0 or 1 as d is less than, equal to or greater than e.
func (d Decimal) Cmp(e Decimal) int { return d.d.Cmp(&e.d) }

// Sign returns -1, 0 or 1 as d is negative, zero or positive.
func (d Decimal) Sign() int { return d.d.Sign() }

// IsZero reports whether d is 0.
func (d Decimal) IsZero() bool { return d.d.IsZero() }

// Append appends the number in plain notation, never with an exponent, to dst.
func (d Decimal) Append(dst []byte) []byte { return d.d.Append(dst, 'f') }

// String returns the number in plain notation, never with an exponent.
func (d Decimal) String() string {
	var buf [48]byte
	return string(d.Append(buf[:0]))
}

// tidy replaces -0 and 0 × 10² by 0. It keeps the zeros of 0.00.
func (d Decimal) tidy() Decimal {
	if d.d.IsZero() {
		d.d.Negative = false
		d.d.Exponent = min(d.d.Exponent, 0)
	}
	return d
}

// mustExact panics if an exact operation fails. This never happens, because ParseDecimal bounds exponents far below apd's limits.
func mustExact(_ apd.Condition, err error) {
	if err != nil {
		panic("market: exact decimal arithmetic: " + err.Error())
	}
}

// MarshalText returns the text of String.
func (d Decimal) MarshalText() ([]byte, error) { return d.Append(nil), nil }

// UnmarshalText parses a decimal in the same way as ParseDecimal.
func (d *Decimal) UnmarshalText(text []byte) error {
	v, err := ParseDecimal(string(text))
	if err == nil {
		*d = v
	}
	return err
}
