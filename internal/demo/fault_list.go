package demo

import (
	"slices"
	"sync"
	"sync/atomic"
)

// faultList contains the active faults. It is safe for concurrent use.
type faultList struct {
	// If hasResponseRules is false, no rule applies to responses, and a request does not lock mu. If hasFrameRules is false, no rule
	// applies to frames, and a frame does not lock mu.
	hasResponseRules, hasFrameRules atomic.Bool

	mu    sync.Mutex
	rules []rule
}

type rule struct {
	Fault
	chance rng
}

func (l *faultList) set(faults []Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = make([]rule, len(faults))
	for i, f := range faults {
		l.rules[i] = rule{f, rng(hash(f.Seed, 8))}
	}
	l.updateFlags()
}

func (l *faultList) updateFlags() {
	frameRules := 0
	for i := range l.rules {
		if l.rules[i].spoilsFrames() {
			frameRules++
		}
	}
	l.hasFrameRules.Store(frameRules > 0)
	l.hasResponseRules.Store(frameRules < len(l.rules))
}

// take returns the rule that applies to a request, or nil, and counts the use of the rule.
func (l *faultList) take(path string, c *call) *Fault {
	if !l.hasResponseRules.Load() {
		return nil
	}
	return l.first(func(f *Fault) bool {
		return !f.spoilsFrames() && (f.Path == "*" && path != StreamPath || f.Path == path) && (f.TokenID == "" || c.mentions(f.TokenID)) &&
			(f.Kind != FaultUnknownList || c.hasOptionalList(path))
	})
}

// first returns the first matching rule whose random draw succeeds, or nil, and counts the use of the rule.
func (l *faultList) first(matches func(*Fault) bool) *Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.rules {
		r := &l.rules[i]
		f := r.Fault
		if !matches(&f) || f.Probability > 0 && float64(r.chance.next()>>11)/(1<<53) >= f.Probability {
			continue
		}
		if f.Count == 1 {
			l.rules = slices.Delete(l.rules, i, i+1)
			l.updateFlags()
		} else if f.Count > 1 {
			r.Count--
		}
		return &f
	}
	return nil
}

// hasOptionalList reports whether the request has a list parameter that some venues do not support.
func (c *call) hasOptionalList(path string) bool {
	switch path {
	case "/api/exchange/market-details":
		return c.has("ids") || c.has("tokenIds")
	case "/api/exchange/spreads":
		return c.has("tokenIds")
	}
	return false
}
