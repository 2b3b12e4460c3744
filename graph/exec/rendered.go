package exec

import (
	"unsafe"

	"oddsgraph/internal/market"
)

const (
	// maxRendered is the greatest number of texts that one book stores. It is enough for both sides with two different selections or
	// depths. market.RenderedBytes bounds the total size of these texts.
	maxRendered = 4
	// uncachedTexts is the number of texts of a book that are rendered before the first text is stored. One read of a book renders two
	// texts, one for each side. So a book that is read only once needs no memory for texts.
	uncachedTexts = 2
)

// renderedText is the JSON text of one side of a book. The texts of a book form a linked list, newest first.
type renderedText struct {
	// levels, depth and selection identify the text. Levels never change, so the address of the first level identifies them.
	// Because of this pointer, the garbage collector cannot reuse the address for other levels.
	levels    *market.Level
	depth     int
	selection string
	text      string

	previous *renderedText
	// n is the number of texts in the list from this text to the end. bytes is the total size of these texts and their selections.
	n, bytes int
}

func lastRendered(r *market.Rendered) *renderedText {
	last, _ := r.Last.Load().(*renderedText)
	return last
}

// FindRendered returns the stored text of the levels for a selection. It returns "" if no such text is stored, or if r is nil.
func FindRendered(r *market.Rendered, levels []market.Level, selection string) string {
	if r == nil {
		return ""
	}
	if s := lastRendered(r).find(levels, selection); s != nil {
		return s.text
	}
	return ""
}

func (s *renderedText) find(levels []market.Level, selection string) *renderedText {
	for first := unsafe.SliceData(levels); s != nil; s = s.previous {
		if s.levels == first && s.depth == len(levels) && s.selection == selection {
			return s
		}
	}
	return nil
}

// KeepRendered stores a copy of the text of the levels if the limits of the book allow another text. It does not store the first
// texts of a book. The constant uncachedTexts is the number of these texts. The text must depend only on the levels and the
// selection. KeepRendered stores nothing if r is nil, if the selection is "", or if there are no levels.
func KeepRendered(r *market.Rendered, levels []market.Level, selection string, text []byte) {
	if r == nil || len(levels) == 0 || selection == "" || r.Count.Load() < uncachedTexts && r.Count.Add(1) <= uncachedTexts {
		return
	}
	last := lastRendered(r)
	next := &renderedText{levels: &levels[0], depth: len(levels), selection: selection, previous: last, n: 1, bytes: len(selection) + len(text)}
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
	r.Last.CompareAndSwap(last, next) // stores nothing if another goroutine has stored a text in the meantime
}
