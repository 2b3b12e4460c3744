package app

import (
	"slices"
	"sync"

	"oddsgraph/internal/market/reqctx"
)

// maxUnread is the maximum number of unreadable parts that unreadParts stores until the next call of take.
const maxUnread = 1000

// unreadParts collects the parts of responses and frames that could not be read. It is safe for concurrent use.
type unreadParts struct {
	mu   sync.Mutex
	what []string
}

func (u *unreadParts) add(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.what) < maxUnread {
		u.what = append(u.what, what)
	}
}

// take returns the parts that were collected since the last call of take, sorted and without duplicates.
func (u *unreadParts) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	what := u.what
	u.what = nil
	slices.Sort(what)
	return slices.Compact(what)
}

// restParts is a rest.Observer that collects unreadable parts.
type restParts struct{ *unreadParts }

// Call implements rest.Observer.
func (restParts) Call(reqctx.UpstreamCall, error) {}

// Drift implements rest.Observer.
func (p restParts) Drift(_, what string) { p.add(what) }

// streamParts is a stream.Observer that collects unreadable parts.
type streamParts struct{ *unreadParts }

// Frame implements stream.Observer.
func (streamParts) Frame(string) {}

// Reconnect implements stream.Observer.
func (streamParts) Reconnect(string) {}

// Drift implements stream.Observer.
func (p streamParts) Drift(what string) { p.add(what) }
