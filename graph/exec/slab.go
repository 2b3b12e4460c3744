package exec

import "context"

// slab hands out values of one type, several of which are made at once, since the objects of a list come one by one. When the
// execution has ended its values are handed out again.
type slab[T any] struct {
	// values are those that were made last, used of which were handed out.
	values []T
	used   int
}

const (
	minMade = 4
	maxMade = 64
	// maxKept bounds how many values a slab keeps for another execution.
	maxKept = 512
)

// Make returns a new, zero T for the response that ctx belongs to. In an execution it is used again for something else when the
// execution has ended; so it is for what nobody keeps longer.
func Make[T any](ctx context.Context) *T {
	if x := From(ctx); x != nil {
		return &slabOf[T](x).take(1)[0]
	}
	return new(T)
}

// MakeList is Make for n values in a row. The list is never nil, which would be written as null.
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

// empty takes back the values that were handed out.
func (s *slab[T]) empty() {
	if len(s.values) > maxKept {
		s.values = nil
	} else {
		clear(s.values[:s.used])
	}
	s.used = 0
}
