package market

import (
	"sync/atomic"
	"unsafe"
)

const (
	// maxWritten and maxWrittenBytes bound what is kept of one book: bids and asks for two selections or depths, or both sides of
	// the deepest book. There is no reason to keep more for a book that is soon replaced.
	maxWritten      = 4
	maxWrittenBytes = 16 << 10
	// baseWritten and writtenLevel are what a book of few levels may keep, and what more for each level of a side.
	baseWritten, writtenLevel = 1 << 10, 160
	// unkept is how many sides are written before one is kept. A book that nobody reads twice costs no memory.
	unkept = 2
)

// WrittenRoom returns the most bytes that a Written keeps of a book with so many levels a side.
func WrittenRoom(levels int) int { return min(baseWritten+writtenLevel*levels, maxWrittenBytes) }

// Written keeps what sides of a book were written as, so that who is to write the same again can copy it. Levels never
// change, so a text is found by where the levels lie, how many they are and what of them was selected: it is the same for
// every copy of the book that shares them. It holds at most 4 texts of WrittenRoom bytes together, the
// first that are wanted again, and goes with the book. A nil Written keeps nothing. It is safe for concurrent use, and nobody waits.
type Written struct {
	last  atomic.Pointer[writtenSide]
	sides atomic.Uint32 // that were written, as far as they are counted
}

// writtenSide is a text and those that were kept before it.
type writtenSide struct {
	// levels keeps the memory in which they lie from being used for others.
	levels    *Level
	depth     int
	selection string
	text      string

	before *writtenSide
	// n and bytes count this one and those before.
	n, bytes int
}

// Find returns what levels were written as for a selection, "" where that was not kept.
func (w *Written) Find(levels []Level, selection string) string {
	if w == nil {
		return ""
	}
	if s := w.last.Load().find(levels, selection); s != nil {
		return s.text
	}
	return ""
}

func (s *writtenSide) find(levels []Level, selection string) *writtenSide {
	for first := unsafe.SliceData(levels); s != nil; s = s.before {
		if s.levels == first && s.depth == len(levels) && s.selection == selection {
			return s
		}
	}
	return nil
}

// Keep keeps a copy of what levels were written as, unless there is no room for it. The selection stands for all that the text
// depends on but the levels; where it is "", or there are no levels, nothing is kept.
func (w *Written) Keep(levels []Level, selection string, text []byte) {
	if w == nil || len(levels) == 0 || selection == "" || w.sides.Load() < unkept && w.sides.Add(1) <= unkept {
		return
	}
	last := w.last.Load()
	next := &writtenSide{levels: &levels[0], depth: len(levels), selection: selection, before: last, n: 1, bytes: len(selection) + len(text)}
	if last != nil {
		next.n, next.bytes = last.n+1, last.bytes+next.bytes
	}
	if next.n > maxWritten || next.bytes > WrittenRoom(len(levels)) || last.find(levels, selection) != nil {
		return
	}
	next.text = string(text)
	w.last.CompareAndSwap(last, next) // who is late keeps nothing this time
}
