package queries

import (
	"fmt"
	"time"
)

// Bound is one end of a range of instants. The zero value is no bound. So every instant can be a bound, also the zero time.Time,
// which is 0001-01-01T00:00:00Z. Equal bounds are == each other.
type Bound struct {
	at    time.Time // in UTC, because == also compares the locations of times
	isSet bool
}

// At returns the bound at an instant.
func At(t time.Time) Bound { return Bound{t.UTC(), true} }

// BoundOf returns the bound at *t, or no bound if t is nil.
func BoundOf(t *time.Time) Bound {
	if t == nil {
		return Bound{}
	}
	return At(*t)
}

// Get returns the instant of the bound in UTC. ok is false if there is no bound.
func (b Bound) Get() (t time.Time, ok bool) { return b.at, b.isSet }

// IsSet reports whether there is a bound.
func (b Bound) IsSet() bool { return b.isSet }

// Format returns the instant in the form of a layout of package time, or "" if there is no bound.
func (b Bound) Format(layout string) string {
	if !b.isSet {
		return ""
	}
	return b.at.Format(layout)
}

// String returns the instant, or "none". Cursors of a search contain a hash of this text.
func (b Bound) String() string {
	if !b.isSet {
		return "none"
	}
	return fmt.Sprint(b.at)
}

// IsOutside reports whether t is before start or after end.
func IsOutside(t time.Time, start, end Bound) bool {
	return start.isSet && t.Before(start.at) || end.isSet && t.After(end.at)
}
