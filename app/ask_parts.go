package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"oddsgraph/internal/upstream"
)

const maxUnread = 1000

// unreadParts collects the parts of responses and frames that could not be read. It is safe for concurrent use.
type unreadParts struct {
	mu   sync.Mutex
	what []string
	// counts maps a text with the source and the part to the number of times that it could not be read.
	counts map[string]int
}

func (u *unreadParts) add(source, what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.counts == nil {
		u.counts = make(map[string]int)
	}
	if len(u.counts) < maxUnread {
		u.counts[source+": "+what]++
	}
	if len(u.what) < maxUnread {
		u.what = append(u.what, what)
	}
}

// report returns all parts since the start, with their sources and numbers.
func (u *unreadParts) report() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var parts []string
	for _, part := range slices.Sorted(maps.Keys(u.counts)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", part, u.counts[part]))
	}
	if len(parts) == 0 {
		return "no difference from the known forms"
	}
	return "differences from the known forms: " + strings.Join(parts, ", ")
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

func (p restParts) Drift(endpoint, what string) { p.add(endpoint, what) }

type streamParts struct{ *unreadParts }

func (streamParts) Frame(string) {}

func (streamParts) Reconnect(string) {}

func (p streamParts) Drift(what string) { p.add("stream", what) }
