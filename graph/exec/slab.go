package exec

import "context"

// slab allocates values of one type in blocks, since the objects of a list are made one by one. It reuses the values after the
// execution.
type slab[T any] struct {
	// values is the current block. The first used values were handed out.
	values []T
	used   int
}

const (
	minMade = 4
	maxMade = 64
	// maxKept limits the values that a slab keeps for another execution.
	maxKept = 512
)

// Make returns a zero T for the response of ctx. In an execution the value is reused after the execution, so do not retain it.
func Make[T any](ctx context.Context) *T {
	if x := From(ctx); x != nil {
		return &slabOf[T](x).take(1)[0]
	}
	return new(T)
}

// MakeList is like Make for n consecutive values. The list is never nil, because nil would be written as null.
func MakeList[T any](ctx context.Context, n int) []T {
	if x := From(ctx); x != nil {
		return slabOf[T](x).take(n)
	}
	return make([]T, n)
}

func slabOf[T any](x *Execution) *slab[T] {
	for _, s := range x.slabs {
		if s, ok := s.(*slab[T]); ok {
			return s
		}
	}
	s := &slab[T]{}
	x.slabs = append(x.slabs, s)
	return s
}

func (s *slab[T]) take(n int) []T {
	if s.values == nil || len(s.values)-s.used < n {
		s.values, s.used = make([]T, max(n, min(max(minMade, 2*len(s.values)), maxMade))), 0
	}
	from := s.used
	s.used += n
	return s.values[from:s.used:s.used]
}

// empty clears the values and makes them available again.
func (s *slab[T]) empty() {
	if len(s.values) > maxKept {
		s.values = nil
	} else {
		clear(s.values[:s.used])
	}
	s.used = 0
}
