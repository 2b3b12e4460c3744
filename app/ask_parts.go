package app

import (
	"slices"
	"sync"

	"oddsgraph/internal/upstream"
)

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

func (restParts) Call(upstream.HTTPCall, error) {}

func (p restParts) Drift(_, what string) { p.add(what) }

type streamParts struct{ *unreadParts }

func (streamParts) Frame(string) {}

func (streamParts) Reconnect(string) {}

func (p streamParts) Drift(what string) { p.add(what) }
