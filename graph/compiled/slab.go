package compiled

import "context"

// slab hands out values of one type. It makes several at once, since the objects of a list come one by one.
type slab[T any] struct {
	free []T
	// made is the number of values that were made last.
	made int
}

const (
	minMade = 4
	maxMade = 64
)

// Make returns a new, zero T for the response that ctx belongs to. In an execution it lies beside others of its type, which
// all live as long as one of them is kept; so it is for what ends with the response.
func Make[T any](ctx context.Context) *T {
	x := From(ctx)
	if x == nil {
		return new(T)
	}
	for _, s := range x.slabs {
		if s, ok := s.(*slab[T]); ok {
			return s.take()
		}
	}
	s := &slab[T]{}
	x.slabs = append(x.slabs, s)
	return s.take()
}

func (s *slab[T]) take() *T {
	if len(s.free) == 0 {
		s.made = min(max(minMade, 2*s.made), maxMade)
		s.free = make([]T, s.made)
	}
	v := &s.free[0]
	s.free = s.free[1:]
	return v
}
