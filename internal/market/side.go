package market

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// chunkLevels is the greatest number of levels in a chunk. Set copies one chunk and the pointers to all chunks. For a side with
// 200 levels, chunks of about this size minimize the copied memory.
const chunkLevels = 7

// Side is one side of a book, best price first. A Side is immutable, can be copied, and is safe for concurrent use. The zero value
// is an empty side.
type Side struct {
	// levels contains at least count levels. Cut lowers only count, so levels may contain further levels that are no part of the side.
	// The field levels is nil if count is 0.
	levels *storage
	count  int
}

// storage contains the levels of a side in chunks, in the slice flat, or in both.
type storage struct {
	// chunks is nil if NewSide made the storage. It never changes, and no chunk is empty.
	chunks []*chunk
	count  int

	// If chunks is not nil, flat caches the result of Levels, and mu protects flat. The elements of flat never change.
	mu   sync.Mutex
	flat []Level
}

// chunk contains adjacent levels of a side. It is immutable once a side contains it.
type chunk struct {
	count  int
	levels [chunkLevels]Level
}

func newChunk(parts ...[]Level) *chunk {
	c := new(chunk)
	for _, p := range parts {
		c.count += copy(c.levels[c.count:], p)
	}
	return c
}

func (c *chunk) all() []Level { return c.levels[:c.count] }

// NewSide returns a side with the given levels, which must be sorted best price first. The slice must not be changed afterwards.
func NewSide(list []Level) Side {
	if len(list) == 0 {
		return Side{}
	}
	return Side{&storage{flat: list, count: len(list)}, len(list)}
}

// Len returns the number of levels.
func (s Side) Len() int { return s.count }

// Best returns the level with the best price, or nil if the side is empty. The level must not be changed.
func (s Side) Best() *Level {
	c := s.cursor()
	return c.next()
}

// All returns the levels, best price first. The levels must not be changed.
func (s Side) All() iter.Seq[*Level] {
	return func(yield func(*Level) bool) {
		c := s.cursor()
		for l := c.next(); l != nil && yield(l); l = c.next() {
		}
	}
}

// Levels returns the levels in one slice, which must not be changed. The slices of a side and of its cuts may share one array.
func (s Side) Levels() []Level {
	if s.count == 0 {
		return []Level{}
	}
	if s.levels.chunks == nil { // flat never changes
		return s.levels.flat[:s.count:s.count]
	}
	s.levels.mu.Lock()
	defer s.levels.mu.Unlock()
	if len(s.levels.flat) < s.count {
		flat := make([]Level, 0, s.count)
		for _, c := range s.levels.chunks {
			flat = append(flat, c.all()[:min(c.count, s.count-len(flat))]...)
		}
		s.levels.flat = flat
	}
	return s.levels.flat[:s.count:s.count]
}

// Cut returns the best levels of the side, at most depth of them. The result shares its memory with s.
func (s Side) Cut(depth int) Side {
	if depth <= 0 {
		return Side{}
	}
	s.count = min(s.count, depth)
	return s
}

// Bytes returns an upper bound of the memory of a side in bytes. It does not count the extra memory of Decimals whose coefficients
// do not fit into a machine word.
func (s Side) Bytes() int {
	const level, head = 64, 96
	if s.count == 0 {
		return 0
	}
	bytes := head + s.levels.count*level
	if s.levels.chunks != nil {
		bytes += len(s.levels.chunks) * (8 + 8 + chunkLevels*level) // flat may exist in addition to the chunks
	}
	return bytes
}

// Equal reports whether two sides have the same prices and sizes. It skips the chunks that both sides share.
func (s Side) Equal(t Side) bool {
	if s.count != t.count {
		return false
	}
	a, b := s.cursor(), t.cursor()
	for {
		skipShared(&a, &b)
		x, y := a.next(), b.next()
		switch {
		case x == nil || y == nil:
			return x == y
		case x.Price.Cmp(y.Price) != 0 || x.Size.Cmp(y.Size) != 0:
			return false
		}
	}
}

// Set returns a side whose level at l.Price has the size l.Size. A size of 0 or less removes the level. The new side shares the
// unchanged chunks with the old side. If side is SideBuy, the levels are bids, greatest price first. Otherwise they are asks,
// smallest price first.
func (s Side) Set(side OrderSide, l Level) Side {
	order := 1
	if side == SideBuy {
		order = -1
	}
	before := func(x *Level) int { return order * x.Price.Cmp(l.Price) }
	chunks := s.split()
	// at is the index of the last chunk that begins at or before the price. It is 0 if all chunks begin after the price.
	at, starts := slices.BinarySearchFunc(chunks, l.Price, func(c *chunk, _ Decimal) int { return before(&c.levels[0]) })
	if !starts && at > 0 {
		at--
	}
	var old []Level
	if at < len(chunks) {
		old = chunks[at].all()
	}
	i, found := slices.BinarySearchFunc(old, l.Price, func(x Level, _ Decimal) int { return before(&x) })
	switch {
	case l.Size.Sign() <= 0 && !found:
		return s
	case l.Size.Sign() <= 0:
		return s.removeLevel(chunks, at, i)
	case found:
		next := newChunk(old)
		next.levels[i].Size = l.Size
		return join(s.count, chunks[:at], chunks[at+1:], next)
	case len(old) < chunkLevels:
		return join(s.count+1, chunks[:at], chunks[min(at+1, len(chunks)):], newChunk(old[:i], []Level{l}, old[i:]))
	}
	const half = chunkLevels / 2
	first, second := newChunk(old[:half]), newChunk(old[half:])
	if i <= half {
		first = newChunk(old[:i], []Level{l}, old[i:half])
	} else {
		second = newChunk(old[half:i], []Level{l}, old[i:])
	}
	return join(s.count+1, chunks[:at], chunks[at+1:], first, second)
}

// removeLevel returns the side without level i of chunks[at]. It merges this chunk with the next chunk if the remaining levels of
// both chunks fit into one chunk.
func (s Side) removeLevel(chunks []*chunk, at, i int) Side {
	old, after := chunks[at].all(), chunks[at+1:]
	var merged []Level
	if len(after) > 0 && len(old)-1+after[0].count <= chunkLevels {
		merged, after = after[0].all(), after[1:]
	}
	if next := newChunk(old[:i], old[i+1:], merged); next.count > 0 {
		return join(s.count-1, chunks[:at], after, next)
	}
	return join(s.count-1, chunks[:at], after)
}

// split returns chunks that contain exactly the levels of the side. It makes new chunks for a side that NewSide has made or Cut has
// shortened.
func (s Side) split() []*chunk {
	if s.count == 0 {
		return nil
	}
	if s.levels.chunks != nil && s.levels.count == s.count {
		return s.levels.chunks
	}
	var chunks []*chunk
	for part := range slices.Chunk(s.Levels(), chunkLevels) {
		chunks = append(chunks, newChunk(part))
	}
	return chunks
}

// join returns a side of count levels. The side contains the chunks in before, then those in between, then those in after.
func join(count int, before, after []*chunk, between ...*chunk) Side {
	if count == 0 {
		return Side{}
	}
	chunks := make([]*chunk, 0, len(before)+len(between)+len(after))
	chunks = append(append(append(chunks, before...), between...), after...)
	return Side{&storage{chunks: chunks, count: count}, count}
}

// String returns the levels as text.
func (s Side) String() string { return fmt.Sprint(s.Levels()) }

// MarshalJSON writes the levels as a list.
func (s Side) MarshalJSON() ([]byte, error) { return json.Marshal(s.Levels()) }

// UnmarshalJSON reads the list that MarshalJSON has written.
func (s *Side) UnmarshalJSON(text []byte) error {
	var list []Level
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("levels of a book: %w", err)
	}
	*s = NewSide(list)
	return nil
}

type cursor struct {
	// run contains the next levels, and chunks contains the levels after run. left is the number of levels in chunks that still
	// belong to the side.
	run    []Level
	chunks []*chunk
	left   int
}

func (s Side) cursor() cursor {
	switch {
	case s.count == 0:
		return cursor{}
	case s.levels.chunks == nil:
		return cursor{run: s.levels.flat[:s.count]} // without chunks, flat never changes
	default:
		return cursor{chunks: s.levels.chunks, left: s.count}
	}
}

// next returns the next level, or nil after the last one.
func (c *cursor) next() *Level {
	if len(c.run) == 0 {
		if c.left == 0 {
			return nil
		}
		c.run = c.chunks[0].all()
		c.run = c.run[:min(len(c.run), c.left)]
		c.chunks, c.left = c.chunks[1:], c.left-len(c.run)
	}
	l := &c.run[0]
	c.run = c.run[1:]
	return l
}

// skipShared advances two cursors while both are at the beginning of the same chunk.
func skipShared(a, b *cursor) {
	for len(a.run) == 0 && len(b.run) == 0 && a.left > 0 && b.left > 0 && a.chunks[0] == b.chunks[0] && a.chunks[0].count <= min(a.left, b.left) {
		n := a.chunks[0].count
		a.chunks, a.left = a.chunks[1:], a.left-n
		b.chunks, b.left = b.chunks[1:], b.left-n
	}
}

// BookSideDelta returns the changes that turn the first side into the second: new levels, levels with a new size, and removed
// levels with size 0. The result is sorted best price first. BookSideDelta skips the chunks that both sides share.
func BookSideDelta(from, to Side, side OrderSide) []Level {
	delta := []Level{}
	a, b := from.cursor(), to.cursor()
	skipShared(&a, &b)
	for x, y := a.next(), b.next(); x != nil || y != nil; {
		order := 0
		switch {
		case x == nil:
			order = 1
		case y == nil:
			order = -1
		default:
			if order = x.Price.Cmp(y.Price); side == SideBuy {
				order = -order
			}
		}
		switch {
		case order < 0:
			delta = append(delta, Level{Price: x.Price})
			x = a.next()
		case order > 0:
			delta = append(delta, *y)
			y = b.next()
		default:
			if x.Size.Cmp(y.Size) != 0 {
				delta = append(delta, *y)
			}
			skipShared(&a, &b)
			x, y = a.next(), b.next()
		}
	}
	return delta
}
