package market

import (
	"fmt"
	"time"
)

// Clock tells the time. Production uses SystemClock; tests hold it.
type Clock interface {
	// Now returns the present instant. It is safe for concurrent use.
	Now() time.Time
}

// SystemClock is the wall clock.
type SystemClock struct{}

// Now returns time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Date is a calendar day in UTC, counted in days from 1970-01-01. It is comparable and ordered.
type Date int32

// DateOf returns the UTC day that t lies in.
func DateOf(t time.Time) Date {
	s := t.Unix()
	if s < 0 {
		s -= 86399
	}
	return Date(s / 86400)
}

// ParseDate reads the form YYYY-MM-DD.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date of the form YYYY-MM-DD", s)
	}
	return DateOf(t), nil
}

// Start returns the first instant of the day in UTC.
func (d Date) Start() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// String returns the form YYYY-MM-DD.
func (d Date) String() string { return d.Start().Format(time.DateOnly) }
