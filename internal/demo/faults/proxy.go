// Package faults is a proxy that spoils what a venue answers and streams. It stands between the service and any venue: an embedded
// one, whose handler is given to [New], or a real one behind an [httputil.ReverseProxy].
//
// The venue gets every call, also if its answer is spoiled, so it counts calls as without a proxy. Without faults the proxy passes
// everything on unchanged, except that streams are not compressed.
package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is an [http.Handler] in front of a venue. It is safe for concurrent use.
type Proxy struct {
	venue http.Handler

	// active says which targets have rules, so that calls and frames without rules take no lock.
	active [3]atomic.Bool

	mu      sync.Mutex // guards the fields below
	rules   []rule
	kept    map[string]*Answer // for the kind Stale
	streams map[*stream]struct{}
}

type rule struct {
	Fault
	random *rand.Rand
}

// New returns a proxy in front of a venue. It has no faults.
func New(venue http.Handler) *Proxy {
	return &Proxy{venue: venue, streams: make(map[*stream]struct{})}
}

// Set replaces the faults. An empty list clears them, but frozen streams stay frozen. On an error the old faults stay.
func (p *Proxy) Set(faults []Fault) error {
	if len(faults) > maxFaults {
		return fmt.Errorf("more than %d faults", maxFaults)
	}
	for i := range faults {
		if err := faults[i].check(); err != nil {
			return fmt.Errorf("fault %d: %w", i, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.kept = make([]rule, len(faults)), make(map[string]*Answer)
	for i, f := range faults {
		p.rules[i] = rule{f, rand.New(rand.NewPCG(f.Seed, 8))}
	}
	p.note()
	return nil
}

// Faults returns the active faults. A fault with a count has the count that is left.
func (p *Proxy) Faults() []Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := make([]Fault, len(p.rules))
	for i := range p.rules {
		faults[i] = p.rules[i].Fault
	}
	return faults
}

func (p *Proxy) note() {
	for target := range p.active {
		p.active[target].Store(slices.ContainsFunc(p.rules, func(r rule) bool { return r.target() == target }))
	}
}

// take returns the rule that applies to a call, to the opening of a stream or to a frame, or nil, and counts the use of the rule.
// contains reports whether the URL or the frame contains a text.
func (p *Proxy) take(target, path string, contains func(text string) bool) *Fault {
	i := slices.Index(targets, target)
	if !p.active[i].Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.rules {
		r := &p.rules[k]
		if r.target() != i || r.Path != "" && r.Path != path || !r.covers(contains) || r.Probability > 0 && r.random.Float64() >= r.Probability {
			continue
		}
		f := r.Fault
		if f.Count == 1 {
			p.rules = slices.Delete(p.rules, k, k+1)
			p.note()
		} else if f.Count > 1 {
			r.Count--
		}
		return &f
	}
	return nil
}

// ServeHTTP passes a request to the venue, and spoils the answer or the stream.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inURL := func(text string) bool { return strings.Contains(r.URL.RequestURI(), text) }
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		f := p.take(OnOpens, r.URL.Path, inURL)
		if f != nil && !(f.Kind == Delay && f.DelayMs > 0 && pause(r.Context(), f.delay())) {
			f.answer(w, r, newAnswer())
			return
		}
		r.Header.Del("Sec-WebSocket-Extensions") // the proxy does not read compressed frames
		p.venue.ServeHTTP(&opening{w, p, r.URL.Path}, r)
		return
	}
	f := p.take(OnCalls, r.URL.Path, inURL)
	if f == nil {
		p.venue.ServeHTTP(w, r)
		return
	}
	r.Header.Del("Accept-Encoding")
	a, key := newAnswer(), ""
	if f.Kind == Stale {
		key = keyOf(r)
	}
	if p.venue.ServeHTTP(a, r); key != "" && a.Status == http.StatusOK {
		p.repeat(key, a, f.delay())
	}
	f.answer(w, r, a)
}

// Reset removes all faults, and ends the freezes of streams.
func (p *Proxy) Reset() {
	_ = p.Set(nil) // without faults, there is no error
	p.each(func(s *stream) {
		s.freeze = nil
		_ = s.Conn.SetWriteDeadline(time.Time{})
	})
}

// CloseStreams closes all open streams with a code, or without a close frame if the code is 0.
func (p *Proxy) CloseStreams(code int) {
	if code == 0 {
		for _, s := range p.open() {
			_ = s.Conn.Close()
		}
		return
	}
	p.each(func(s *stream) { s.end(code) })
}

func (p *Proxy) open() []*stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.streams))
}

// each calls f for each open stream, with the lock of the stream. A client that does not read delays it by at most the time goodbye,
// and then loses its stream, because a write holds the lock.
func (p *Proxy) each(f func(*stream)) {
	streams := p.open()
	for _, s := range streams {
		_ = s.Conn.SetWriteDeadline(time.Now().Add(goodbye))
	}
	for _, s := range streams {
		s.mu.Lock()
		f(s)
		s.mu.Unlock()
	}
}

// pause waits for d. It returns false if the context ends before d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
