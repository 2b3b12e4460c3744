package ratelimit

import (
	"math"
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Family is a separate limit of the venue for some of its endpoints.
type Family struct {
	// Endpoints are the endpoints that share the limit. No other family contains them.
	Endpoints []reqctx.Endpoint
	// Limit is the number of calls that the venue accepts in any period of the length Span. The budget uses only the part of Limit
	// that Usable returns.
	Limit int
	Span  time.Duration
}

// Bucket returns a family that never exceeds a token bucket of the venue. The bucket contains at most maxTokens. Each second the
// venue adds tokensPerSecond, and each call removes tokensPerCall. The span of the family is the time in which an empty bucket
// becomes full. The limit of the family is the number of calls for which a full bucket has tokens.
func Bucket(endpoints []reqctx.Endpoint, tokensPerSecond, maxTokens, tokensPerCall float64) Family {
	return Family{
		Endpoints: endpoints, Limit: max(int(maxTokens/tokensPerCall), 1),
		Span: time.Duration(math.Ceil(max(maxTokens, tokensPerCall) / tokensPerSecond * float64(time.Second))),
	}
}

// openFamilies opens the windows of the families. If several processes share the limits, each process gets an equal part of the
// limit of a family, because the ledger does not count calls to families.
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
			w.withhold(w.margin, b.opened.Add(w.span+time.Second)) // a replica that this process replaces may have made calls
		}
		for _, e := range f.Endpoints {
			b.families[e] = w
		}
	}
}

// eachFamily returns the windows of all families, each window once.
func (b *Budget) eachFamily() (out []*window) {
	for _, w := range b.families {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
