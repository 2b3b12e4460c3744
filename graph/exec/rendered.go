package exec

import (
	"unsafe"

	"oddsgraph/internal/market"
)

const (
	// maxRendered and market.RenderedBytes bound what one book keeps: both sides for two selections or depths.
	maxRendered = 4
	// unkept is the number of renderings before the first one is kept. A book that is read once costs no memory.
	unkept = 2
)

// rendered is the JSON text of one side of a book. The texts of a book are a list, the newest first.
type rendered struct {
	// levels, depth and selection are the key. Levels never change, so their address identifies them; the pointer also keeps
	// the memory from being reused.
	levels    *market.Level
	depth     int
	selection string
	text      string

	before *rendered
	// n and bytes count this text and all before it.
	n, bytes int
}

func lastRendered(r *market.Rendered) *rendered {
	last, _ := r.Last.Load().(*rendered)
	return last
}

// FindRendered returns the kept text of levels for a selection, or "". r may be nil.
func FindRendered(r *market.Rendered, levels []market.Level, selection string) string {
	if r == nil {
		return ""
	}
	if s := lastRendered(r).find(levels, selection); s != nil {
		return s.text
	}
	return ""
}

func (s *rendered) find(levels []market.Level, selection string) *rendered {
	for first := unsafe.SliceData(levels); s != nil; s = s.before {
		if s.levels == first && s.depth == len(levels) && s.selection == selection {
			return s
		}
	}
	return nil
}

// KeepRendered keeps a copy of the text of levels if there is room. The selection must be all that the text depends on besides
// the levels; if it is "", or there are no levels, nothing is kept. r may be nil.
func KeepRendered(r *market.Rendered, levels []market.Level, selection string, text []byte) {
	if r == nil || len(levels) == 0 || selection == "" || r.Count.Load() < unkept && r.Count.Add(1) <= unkept {
		return
	}
	last := lastRendered(r)
	next := &rendered{levels: &levels[0], depth: len(levels), selection: selection, before: last, n: 1, bytes: len(selection) + len(text)}
	if last != nil {
		next.n, next.bytes = last.n+1, last.bytes+next.bytes
	}
	if next.n > maxRendered || next.bytes > market.RenderedBytes(len(levels)) || last.find(levels, selection) != nil {
		return
	}
	next.text = string(text)
	if last == nil {
		r.Last.CompareAndSwap(nil, next)
		return
	}
	r.Last.CompareAndSwap(last, next) // if another goroutine was faster, nothing is kept
}
