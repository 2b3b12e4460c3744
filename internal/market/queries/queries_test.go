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
	for _, test := range []struct {
		after, before, end time.Time
		want               bool
	}{
		{never, never, never, true}, {never, never, at(5), true},
		{at(5), never, at(5), true}, {at(5), never, at(4), false}, {at(5), never, never, false},
		{never, at(5), at(5), true}, {never, at(5), at(6), false}, {never, at(5), never, false},
		{at(4), at(6), at(5), true}, {at(4), at(6), at(7), false}, {at(4), at(6), at(3), false},
	} {
		if got := (Search{EndsAfter: test.after, EndsBefore: test.before}).MatchesEnd(test.end); got != test.want {
			t.Errorf("EndsAfter %v, EndsBefore %v: MatchesEnd(%v) = %t, want %t", test.after, test.before, test.end, got, test.want)
		}
	}
}
