package queries

import (
	"testing"
	"time"
)

func TestBookDepthStep(t *testing.T) {
	for depth, want := range map[int]int{-1: 20, 1: 20, 20: 20, 21: 50, 50: 50, 51: 200, 200: 200, 999: MaxBookDepth} {
		if got := BookDepthStep(depth); got != want {
			t.Errorf("BookDepthStep(%d) = %d, want %d", depth, got, want)
		}
	}
}

func TestMatchesEnd(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC) }
	var never time.Time
	// first is the zero instant of Go and .NET. It is a bound like any other.
	none, first := Bound{}, At(time.Time{})
	for _, test := range []struct {
		after, before Bound
		end           time.Time
		want          bool
	}{
		{none, none, never, true}, {none, none, at(5), true},
		{At(at(5)), none, at(5), true}, {At(at(5)), none, at(4), false}, {At(at(5)), none, never, false},
		{none, At(at(5)), at(5), true}, {none, At(at(5)), at(6), false}, {none, At(at(5)), never, false},
		{At(at(4)), At(at(6)), at(5), true}, {At(at(4)), At(at(6)), at(7), false}, {At(at(4)), At(at(6)), at(3), false},
		{none, first, at(5), false}, {none, first, never, false}, {first, none, at(5), true}, {first, none, never, false},
	} {
		if got := (Search{EndsAfter: test.after, EndsBefore: test.before}).MatchesEnd(test.end); got != test.want {
			t.Errorf("EndsAfter %v, EndsBefore %v: MatchesEnd(%v) = %t, want %t", test.after, test.before, test.end, got, test.want)
		}
	}
}
