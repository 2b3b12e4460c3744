package reads

import (
	"context"
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

func TestCombine(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	h := NewHandle(at(9))
	for name, tt := range map[string]struct {
		in   []Meta
		want Meta
	}{
		"nothing":           {nil, Meta{Source: market.SourceComputed}},
		"not received":      {[]Meta{{AsOf: at(1), Stale: true}}, Meta{Source: market.SourceComputed}},
		"one Meta":          {[]Meta{{AsOf: at(1), ReceivedAt: at(2), Source: market.SourceREST, Handle: h}}, Meta{AsOf: at(1), ReceivedAt: at(2), Source: market.SourceComputed}},
		"oldest of each":    {[]Meta{{AsOf: at(5), ReceivedAt: at(6)}, {AsOf: at(3), ReceivedAt: at(9)}}, Meta{AsOf: at(3), ReceivedAt: at(6), Source: market.SourceComputed}},
		"either order":      {[]Meta{{AsOf: at(3), ReceivedAt: at(9)}, {AsOf: at(5), ReceivedAt: at(6)}}, Meta{AsOf: at(3), ReceivedAt: at(6), Source: market.SourceComputed}},
		"one is stale":      {[]Meta{{ReceivedAt: at(6)}, {ReceivedAt: at(7), Stale: true}}, Meta{ReceivedAt: at(6), Source: market.SourceComputed, Stale: true}},
		"most severe cause": {[]Meta{{ReceivedAt: at(6), Stale: true, Cause: CauseThrottled}, {ReceivedAt: at(7), Stale: true}, {ReceivedAt: at(8), Cause: CauseUpstreamDown}}, Meta{ReceivedAt: at(6), Source: market.SourceComputed, Stale: true, Cause: CauseThrottled}},
		"one has no AsOf":   {[]Meta{{ReceivedAt: at(6)}, {ReceivedAt: at(7), AsOf: at(5)}}, Meta{AsOf: at(5), ReceivedAt: at(6), Source: market.SourceComputed}},
	} {
		if got := Combine(tt.in...); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// refreshes records the keys that were passed to RefreshKeys.
type refreshes [][]any

func (r *refreshes) RefreshKeys(_ context.Context, keys []any) { *r = append(*r, keys) }

func TestHandle(t *testing.T) {
	until := time.Unix(5, 0)
	h, other := NewHandle(until), NewHandle(until)
	if !h.Valid() || h.FreshUntil() != until.UnixNano() || !h.Usable(until.Add(-1)) || h.Usable(until) || h.Due(until) {
		t.Errorf("a new handle: valid %v, fresh until %d; want true, %d, and usable until then", h.Valid(), h.FreshUntil(), until.UnixNano())
	}
	h.Invalidate()
	if h.Valid() || !other.Valid() {
		t.Errorf("after Invalidate of the first handle: got valid %v and %v, want false and true", h.Valid(), other.Valid())
	}
}

func TestRefresh(t *testing.T) {
	at := time.Unix(5, 0)
	var prices, books refreshes
	handle := func(by Refresher, key any) *Handle {
		h := NewHandle(at)
		h.SetRefresher(by, key)
		h.Renew(at, at.Add(time.Minute))
		return h
	}
	a, b, c := handle(&prices, "a"), handle(&books, 2), handle(&prices, "c")
	for _, step := range []struct {
		at   time.Duration
		want bool
	}{{-1, false}, {0, true}, {0, false}, {RefreshPause - 1, false}, {RefreshPause, true}} {
		if got := a.Due(at.Add(step.at)); got != step.want {
			t.Errorf("%v after the end of its fresh time, a value is due: %v, want %v", step.at, got, step.want)
		}
	}
	if a.Renew(at.Add(time.Hour), at.Add(time.Hour)); a.Due(at.Add(time.Minute)) {
		t.Error("a renewed value is due")
	}
	if !b.Usable(at.Add(time.Minute-1)) || b.Usable(at.Add(time.Minute)) {
		t.Error("a value is not usable until the end of its stale time")
	}
	Refresh(t.Context(), []*Handle{a, b, c})
	if fmt.Sprint(prices, books) != "[[a c]] [[2]]" {
		t.Errorf("the keys %v and %v were refreshed, want a and c, and 2", prices, books)
	}
}

func TestStreamHandle(t *testing.T) {
	s := &Session{}
	h := NewStreamHandle(s)
	if !h.Valid() || !h.Usable(time.Now()) || h.FreshUntil() != 0 || h.Due(time.Now()) {
		t.Errorf("a new handle: valid %v, usable %v, fresh until %d; want true, true, 0", h.Valid(), h.Usable(time.Now()), h.FreshUntil())
	}
	s.End(time.Unix(7, 0))
	s.End(time.Unix(9, 0))
	if at, ended := s.Ended(); !ended || !at.Equal(time.Unix(7, 0)) || h.Valid() {
		t.Errorf("after two calls of End: got ended %v at %s and valid %v, want the time of the first call and false", ended, at, h.Valid())
	}
	if late := NewStreamHandle(s); late.Valid() {
		t.Error("the handle of an ended session is valid")
	}
}
