package market

import (
	"fmt"
	"time"
)

// Clock returns the time. Tests replace SystemClock.
type Clock interface {
	// Now returns the current time. It is safe for concurrent use.
	Now() time.Time
}

// SystemClock is the wall clock.
type SystemClock struct{}

// Now returns time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Date is a UTC day, as the number of days since 1970-01-01.
type Date int32

// DateOf returns the UTC day that contains t.
func DateOf(t time.Time) Date {
	s := t.Unix()
	if s < 0 {
		s -= 86399
	}
	return Date(s / 86400)
}

// ParseDate parses a date of the form YYYY-MM-DD.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date of the form YYYY-MM-DD", s)
	}
	return DateOf(t), nil
}

// Start returns the first instant of the day in UTC.
func (d Date) Start() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// String returns the date in the form YYYY-MM-DD.
func (d Date) String() string { return d.Start().Format(time.DateOnly) }

// MarshalText returns d.String().
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a date in the same way as ParseDate.
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDate(string(text))
	return err
}
