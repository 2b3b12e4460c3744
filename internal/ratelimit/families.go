package ratelimit

import (
	"math"
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Family is a limit that the venue publishes for some of its endpoints.
type Family struct {
	// Endpoints are the endpoints that share the limit. No other family contains them.
	Endpoints []reqctx.Endpoint
	// Limit is the number of calls that the venue accepts in any Span. A twentieth is never used.
	Limit int
	Span  time.Duration
}

// Bucket returns the family for a token bucket. The venue adds refill tokens a second, up to burst tokens, and each call removes
// cost tokens. Span is the time in which an empty bucket becomes full. Limit is the number of calls that a full bucket allows, so
// the bucket is never empty.
func Bucket(endpoints []reqctx.Endpoint, refill, burst, cost float64) Family {
	return Family{
		Endpoints: endpoints, Limit: max(int(burst/cost), 1), Span: time.Duration(math.Ceil(max(burst, cost) / refill * float64(time.Second))),
	}
}

// openFamilies opens the windows of the families. The ledger counts only public calls, so processes that share limits divide the
// limit of a family into equal parts.
func (b *Budget) openFamilies() {
	b.families = make(map[reqctx.Endpoint]*window)
	for _, f := range b.cfg.Families {
		limit := f.Limit
		if s := b.cfg.Sharing; s.Ledger != nil {
			limit = max(limit/max(s.Replicas, 1), 1) // package app rejects a configuration with more replicas than calls
		}
		w := &window{budget: b, span: f.Span + skew, ceiling: Usable(limit), callers: make(map[string]*caller)}
		w.limit, w.margin = w.ceiling, limit-w.ceiling
		if b.cfg.Sharing.Ledger != nil {
			w.withhold(w.margin, b.opened.Add(w.span+time.Second)) // a replica that was replaced may have made calls
		}
		for _, e := range f.Endpoints {
			b.families[e] = w
		}
	}
}

// eachFamily returns each window of a family once.
func (b *Budget) eachFamily() (out []*window) {
	for _, w := range b.families {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// inheritFamilies lets the families use only their reserve while calls of earlier processes may count.
func (b *Budget) inheritFamilies(standing Standing, until, now time.Time) {
	for _, w := range b.eachFamily() {
		w.guest = standing == Second || standing == Third
		end := until
		if !w.guest {
			end = earlier(until, b.opened.Add(w.span+time.Second))
		}
		switch {
		case standing == Alone || !end.After(now):
			w.withheld, w.foreign, w.cold = false, 0, time.Time{}
		case standing == Third:
			w.withhold(0, end)
		default:
			w.withhold(w.margin, end)
		}
		if !b.closed {
			w.settle(now)
		}
	}
}
