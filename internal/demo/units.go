package demo

import (
	"strconv"
	"strings"
	"time"
)

// Price is a price per share in ten-thousandths: 6500 is 0.65, and 10000 is the payout of a winning share.
type Price int64

// Size is a number of shares in hundredths: 1050 is 10.5 shares.
type Size int64

// Money is an amount in millionths: 1500000 is 1.5. A Size times a Price is a whole number of millionths.
type Money int64

const payout Price = 10000

// share is one whole share, dollar one whole unit of money.
const (
	share  Size  = 100
	dollar Money = 1_000_000
)

// String returns the price as a decimal number without trailing zeros.
func (p Price) String() string { return string(appendFixed(nil, int64(p), 4)) }

// String returns the size as a decimal number without trailing zeros.
func (s Size) String() string { return string(appendFixed(nil, int64(s), 2)) }

// String returns the amount as a decimal number without trailing zeros.
func (m Money) String() string { return string(appendFixed(nil, int64(m), 6)) }

func notional(s Size, p Price) Money { return Money(int64(s) * int64(p)) }

// appendFixed appends n / 10^scale as a JSON number without trailing zeros.
func appendFixed(b []byte, n int64, scale int) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	unit := int64(1)
	for range scale {
		unit *= 10
	}
	b = strconv.AppendInt(b, n/unit, 10)
	rest := n % unit
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for rest > 0 {
		unit /= 10
		b = append(b, byte('0'+rest/unit))
		rest %= unit
	}
	return b
}

// parseFixed returns s times 10^scale. It returns false if s is not a plain decimal number (no exponent), has more than scale
// decimals or is too long.
func parseFixed(s string, scale int) (int64, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" || len(fraction) > scale || len(whole) > 12 || whole[0] == '+' {
		return 0, false
	}
	for _, c := range []byte(fraction) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", scale-len(fraction)), 10, 64)
	return n, err == nil
}

// ParsePrice parses a decimal number with at most four decimals.
func ParsePrice(s string) (Price, bool) {
	n, ok := parseFixed(s, 4)
	return Price(n), ok
}

// ParseSize parses a decimal number with at most two decimals.
func ParseSize(s string) (Size, bool) {
	n, ok := parseFixed(s, 2)
	return Size(n), ok
}

// millis is an instant in milliseconds since 1970, or a duration in milliseconds. The instant 0 means that there is no instant.
type millis int64

const (
	second millis = 1000
	minute        = 60 * second
	hour          = 60 * minute
	day           = 24 * hour
)

func millisOf(t time.Time) millis { return millis(t.UnixMilli()) }

// Time returns the instant in UTC.
func (t millis) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// floor returns the last multiple of step at or before t.
func (t millis) floor(step millis) millis {
	r := t % step
	if r < 0 {
		r += step
	}
	return t - r
}

// rng is a splitmix64 generator. The package does not use math/rand, so that a seed gives the same venue on every platform and Go
// release.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// intn returns a number in [0, n). The bias is negligible for the small n used here.
func (r *rng) intn(n int) int { return int(r.next() % uint64(n)) }

// between returns a number in [low, high].
func (r *rng) between(low, high int) int { return low + r.intn(high-low+1) }

// oneIn returns true with the probability 1/n.
func (r *rng) oneIn(n int) bool { return r.intn(n) == 0 }

// mix is the finalizer of splitmix64: each bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hash joins numbers into one number that looks random.
func hash(parts ...uint64) uint64 {
	h := uint64(0x243f6a8885a308d3)
	for _, p := range parts {
		h = mix(h ^ p + 0x9e3779b97f4a7c15)
	}
	return h
}

// hashString is like hash, but for text.
func hashString(seed uint64, s string) uint64 {
	h := hash(seed, uint64(len(s)))
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}
