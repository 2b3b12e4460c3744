package market

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// rat parses the text of a Decimal with math/big.
func rat(t testing.TB, d Decimal) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		t.Fatalf("%q is not a number", d.String())
	}
	return r
}

// roundRat rounds r half-even to the given number of decimals.
func roundRat(r *big.Rat, places int) *big.Rat {
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(abs(places))), nil))
	if places < 0 {
		scale.Inv(scale)
	}
	x := new(big.Rat).Mul(r, scale)
	q, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int)) // truncates
	twice := new(big.Int).Abs(rest)
	twice.Lsh(twice, 1)
	if c := twice.Cmp(x.Denom()); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(int64(x.Sign())))
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(q), scale)
}

// roundDigits rounds r half-even to n significant digits.
func roundDigits(r *big.Rat, n int) *big.Rat {
	if r.Sign() == 0 {
		return r
	}
	places := n
	ten := big.NewRat(10, 1)
	a := new(big.Rat).Abs(r)
	for a.Cmp(ten) >= 0 {
		a.Quo(a, ten)
		places--
	}
	for one := big.NewRat(1, 1); a.Cmp(one) < 0; places++ {
		a.Mul(a, ten)
	}
	return roundRat(r, places-1)
}

func abs(n int) int { return max(n, -n) }

func TestParseDecimal(t *testing.T) {
	long := strings.Repeat("9", MaxDecimalLength)
	for _, tt := range []struct{ in, want string }{
		{"0.650", "0.650"},
		{"0.8100000092466668", "0.8100000092466668"},
		{"12345678.12345678901234567", "12345678.12345678901234567"},
		{"25814545.294374414", "25814545.294374414"},
		{"100", "100"},
		{"100.00", "100.00"},
		{"0", "0"},
		{"0.000", "0.000"},
		{"-0", "0"},
		{"-0.00", "0.00"},
		{"-3.10", "-3.10"},
		{"+1", "1"},
		{".5", "0.5"},
		{"-.5", "-0.5"},
		{"5.", "5"},
		{"007", "7"},
		{"1e2", "100"},
		{"1E+2", "100"},
		{"1.50e1", "15.0"},
		{"1.5e-7", "0.00000015"},
		{"0e5", "0"},
		{"-0e64", "0"},
		{"1e64", "1" + strings.Repeat("0", 64)},
		{"1e-64", "0." + strings.Repeat("0", 63) + "1"},
		{"1e00000000002", "100"},
		{long, long},
	} {
		d, err := ParseDecimal(tt.in)
		if err != nil || d.String() != tt.want {
			t.Errorf("ParseDecimal(%q) = %q, %v; want %q", tt.in, d, err, tt.want)
		}
	}
	for _, in := range []string{
		"", " ", "+", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "1e-", "1e1.5", "1 ", " 1", "1,5", "1_000", "--1", "+-1", "1-",
		"NaN", "nan", "sNaN", "NaN123", "Inf", "-Infinity", "infinity", "0x1f", "0b1", "0o7", "1p3", "1f", "١", "½", "1\x00", "1.2.3", "null", "true",
		"1e65", "1e-65", "1e99999", "1e-99999", "1e99999999999999999999", "0e65", "9" + long, "0." + long,
	} {
		if d, err := ParseDecimal(in); !errors.Is(err, ErrDecimal) {
			t.Errorf("ParseDecimal(%q) = %q, %v; want ErrDecimal", in, d, err)
		} else if d != (Decimal{}) {
			t.Errorf("ParseDecimal(%q) returned %q together with an error, want the zero value", in, d)
		}
	}
}

// comparePlain compares parsePlain with parseLiteral.
func comparePlain(t *testing.T, s string) {
	quick, ok := parsePlain(s)
	if !ok {
		return
	}
	slow, err := parseLiteral(s)
	if err != nil || quick.String() != slow.String() || quick.d.Exponent != slow.d.Exponent || quick.d.Form != slow.d.Form || quick.d.Negative != slow.d.Negative {
		t.Errorf("%q: parsePlain returned %s with exponent %v; parseLiteral returned %s with exponent %v, error %v", s, quick, quick.d.Exponent, slow, slow.d.Exponent, err)
	}
}

func TestPlainLiterals(t *testing.T) {
	for _, s := range []string{"0", "-0", "-0.00", "0.650", "007", ".5", "-.5", "5.", "-5.", "999999999999999999", "-0.99999999999999999", "123456789.123456789"} {
		if _, ok := parsePlain(s); !ok {
			t.Errorf("parsePlain rejected %q", s)
		}
		comparePlain(t, s)
	}
	for _, s := range []string{"", "-", ".", "-.", "1e2", "+1", "1..2", "--1", "1-", "9999999999999999999", "0.1234567890123456789"} {
		if d, ok := parsePlain(s); ok {
			t.Errorf("parsePlain(%q) = %s, want ok = false", s, d)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0.650", "-0.00", "5.", ".5", "1e2", "-", "999999999999999999", "١"} {
		f.Add(s)
	}
	f.Fuzz(comparePlain)
}

func TestZeroIsPrintedPlainly(t *testing.T) {
	zero, hundred := MustDecimal("0"), MustDecimal("1e2")
	for name, d := range map[string]Decimal{
		"zero value":       {},
		"product":          zero.Mul(hundred),
		"difference":       hundred.Sub(hundred),
		"sum":              hundred.Add(MustDecimal("-1e2")),
		"new":              NewDecimal(0, 3),
		"absolute":         zero.Mul(hundred).Abs(),
		"negative":         MustDecimal("-0.001").Mul(zero).Reduce(),
		"rounded":          MustDecimal("49").Round(-2),
		"rounded negative": MustDecimal("-0.4").Round(0),
		"quotient":         quo(t, zero, MustDecimal("-3")),
	} {
		if d.String() != "0" || d.Sign() != 0 || !d.IsZero() {
			t.Errorf("%s: got %q with sign %d, want 0", name, d, d.Sign())
		}
	}
	if got := zero.Add(MustDecimal("0.00")).String(); got != "0.00" {
		t.Errorf("0 + 0.00 = %q, want 0.00", got)
	}
}

func quo(t testing.TB, d, e Decimal) Decimal {
	t.Helper()
	r, ok := d.Quo(e)
	if !ok {
		t.Fatalf("%s / %s: Quo returned false", d, e)
	}
	return r
}

func TestQuo(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"1", "3", "0.3333333333333333333333333333333333"},
		{"2", "3", "0.6666666666666666666666666666666667"},
		{"-2", "3", "-0.6666666666666666666666666666666667"},
		{"1", "8", "0.125"},
		{"10.00", "2.0", "5"},
		{"1e3", "1e-3", "1000000"},
		// These quotients have 35 digits or more, so they are rounded to 34 digits. A quotient whose last digit is 5 is rounded
		// half-even. The last quotient ends in 5.1, so it is rounded up.
		{"10000000000000000000000000000000005", "1", "10000000000000000000000000000000000"},
		{"10000000000000000000000000000000015", "1", "10000000000000000000000000000000020"},
		{"99999999999999999999999999999999995", "1", "100000000000000000000000000000000000"},
		{"100000000000000000000000000000000051", "10", "10000000000000000000000000000000010"},
	} {
		if got := quo(t, MustDecimal(tt.a), MustDecimal(tt.b)); got.String() != tt.want {
			t.Errorf("%s / %s = %s; want %s", tt.a, tt.b, got, tt.want)
		}
	}
	for _, zero := range []string{"0", "0.00"} {
		if r, ok := MustDecimal("1").Quo(MustDecimal(zero)); ok || !r.IsZero() {
			t.Errorf("1 / %s: Quo returned %s, %v; want 0, false", zero, r, ok)
		}
		if r, ok := MustDecimal("1").QuoRound(MustDecimal(zero), 2); ok || !r.IsZero() {
			t.Errorf("1 / %s: QuoRound returned %s, %v; want 0, false", zero, r, ok)
		}
	}
}

func TestRoundIsHalfEven(t *testing.T) {
	for _, tt := range []struct {
		in     string
		places int32
		want   string
	}{
		{"0.5", 0, "0"}, {"1.5", 0, "2"}, {"2.5", 0, "2"}, {"-2.5", 0, "-2"}, {"-1.5", 0, "-2"}, {"2.50000001", 0, "3"},
		{"0.125", 2, "0.12"}, {"0.135", 2, "0.14"}, {"0.10", 2, "0.1"}, {"0.1000", 6, "0.1"}, {"9.999", 2, "10"},
		{"1e20", 2, "100000000000000000000"}, {"150", -2, "200"}, {"250", -2, "200"}, {"100.00", 1, "100"},
	} {
		if got := MustDecimal(tt.in).Round(tt.places).String(); got != tt.want {
			t.Errorf("%s to %d places = %s; want %s", tt.in, tt.places, got, tt.want)
		}
		if got, _ := MustDecimal(tt.in).QuoRound(NewDecimal(1, 0), tt.places); got.String() != tt.want {
			t.Errorf("%s / 1 to %d places = %s; want %s", tt.in, tt.places, got, tt.want)
		}
	}
}

// TestQuoRoundRoundsOnce checks that a quotient just above 0.125 is rounded up to 0.13. The result must not be rounded to 34 digits
// first, because this would give 0.125, which is rounded down to 0.12.
func TestQuoRoundRoundsOnce(t *testing.T) {
	a, b := MustDecimal("0.1250000000000000000000000000000000000000000000001"), MustDecimal("1")
	if got := quo(t, a, b).Round(2).String(); got != "0.12" {
		t.Fatalf("rounding twice gives %s, want 0.12, because the test needs a quotient for which rounding twice is wrong", got)
	}
	if got, _ := a.QuoRound(b, 2); got.String() != "0.13" {
		t.Errorf("QuoRound returned %s, want 0.13", got)
	}
}

func TestMulAddDoesNotAllocate(t *testing.T) {
	size, price, sum := MustDecimal("1250.50"), MustDecimal("0.6512"), MustDecimal("987654.3210")
	var sink Decimal
	if n := testing.AllocsPerRun(100, func() { sink = size.Mul(price).Add(sum) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
	if sink.String() != "988468.646600" {
		t.Errorf("got %s, want 988468.646600", sink)
	}
}

// TestDecimalIsUsedConcurrently checks that copies of a Decimal, which may share memory, are safe for concurrent use.
func TestDecimalIsUsedConcurrently(t *testing.T) {
	for _, s := range []string{"0.65", "-12345678901234567890123456789012345678901234567890.250"} {
		d, before := MustDecimal(s), MustDecimal(s).String()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				e := d
				_ = e.Add(d).Sub(e.Mul(d)).Reduce().Round(1).Abs().String()
				_, _ = d.Quo(e)
				_, _ = e.QuoRound(d, 3)
				_ = e.Cmp(d) + e.Sign()
			})
		}
		wg.Wait()
		if d.String() != before {
			t.Errorf("concurrent use changed %s to %s", before, d)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0.650", "-0", "1e64", "1e-64", "0.8100000092466668", ".5", "+5.", "25814545.294374414", "NaN", "1_0", "0x1", "0e9", "99999999999999999999999999999999995"} {
		f.Add(s, "0.3", int32(2))
		f.Add("7", s, int32(-3))
	}
	f.Fuzz(func(t *testing.T, a, b string, places int32) {
		x, err := ParseDecimal(a)
		if err != nil {
			if !errors.Is(err, ErrDecimal) {
				t.Fatalf("%q: %v", a, err)
			}
			return
		}
		if len(a) > MaxDecimalLength {
			t.Fatalf("ParseDecimal accepted a literal of %d characters, want at most %d", len(a), MaxDecimalLength)
		}
		literal, ok := new(big.Rat).SetString(strings.TrimSuffix(a, "."))
		if ok && literal.Cmp(rat(t, x)) != 0 {
			t.Fatalf("ParseDecimal(%q) = %s, want the same value", a, x)
		}
		checkForm(t, x)
		again, err := ParseDecimal(x.String())
		if len(x.String()) <= MaxDecimalLength && (err != nil || again.Cmp(x) != 0 || again.String() != x.String()) {
			t.Fatalf("ParseDecimal(%q) = %s, %v; want the same number", x, again, err)
		}
		y, err := ParseDecimal(b)
		if err != nil {
			return
		}
		checkArithmetic(t, x, y, places%40)
	})
}

// checkForm checks that a number is printed as an optional minus sign and digits, without superfluous leading zeros.
func checkForm(t testing.TB, d Decimal) {
	t.Helper()
	s := d.String()
	digits := strings.TrimPrefix(s, "-")
	whole, _, _ := strings.Cut(digits, ".")
	switch {
	case strings.Trim(s, "-.0123456789") != "", strings.HasSuffix(s, "."), strings.LastIndex(s, "-") > 0,
		whole == "", len(whole) > 1 && whole[0] == '0', d.IsZero() && s[0] == '-':
		t.Fatalf("String returned %q, want plain notation", s)
	}
}

func checkArithmetic(t testing.TB, x, y Decimal, places int32) {
	t.Helper()
	a, b := rat(t, x), rat(t, y)
	if x.Cmp(y) != a.Cmp(b) || x.Sign() != a.Sign() {
		t.Fatalf("Cmp of %s and %s = %d, want %d; or the sign of %s is not %d", x, y, x.Cmp(y), a.Cmp(b), x, a.Sign())
	}
	check := func(name string, got Decimal, want *big.Rat) {
		t.Helper()
		checkForm(t, got)
		if rat(t, got).Cmp(want) != 0 {
			t.Fatalf("%s of %s and %s: got %s, want %s", name, x, y, got, want.FloatString(80))
		}
	}
	check("sum", x.Add(y), new(big.Rat).Add(a, b))
	check("difference", x.Sub(y), new(big.Rat).Sub(a, b))
	check("product", x.Mul(y), new(big.Rat).Mul(a, b))
	check("absolute value", x.Abs(), new(big.Rat).Abs(a))
	check("reduced", x.Reduce(), a)
	check("rounded", x.Round(places), roundRat(a, int(places)))
	if s := x.Reduce().String(); strings.Contains(s, ".") && strings.HasSuffix(s, "0") {
		t.Fatalf("Reduce of %s returned %s, want no trailing zeros", x, s)
	}
	if y.IsZero() {
		return
	}
	exact := new(big.Rat).Quo(a, b)
	check("quotient", quo(t, x, y), roundDigits(exact, 34))
	rounded, _ := x.QuoRound(y, places)
	check("rounded quotient", rounded, roundRat(exact, int(places)))
}

func TestDecimalAgreesWithBigRat(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		checkArithmetic(t, randomDecimal(r), randomDecimal(r), int32(r.IntN(24)-4))
	}
}

func randomDecimal(r *rand.Rand) Decimal {
	digits := make([]byte, 1+r.IntN(40))
	for i := range digits {
		digits[i] = "0012345678999"[r.IntN(13)]
	}
	s := string(digits)
	if at := r.IntN(len(s) + 1); at < len(s) {
		s = s[:at] + "." + s[at:]
	}
	if r.IntN(2) == 0 {
		s = "-" + s
	}
	if r.IntN(4) == 0 {
		s += "e" + []string{"-", "+", ""}[r.IntN(3)] + string("123456789"[r.IntN(9)])
	}
	return MustDecimal(s)
}
