package exec

import "context"

// arena allocates values of one type in blocks, because one allocation for each object of a list would be slow. The values of the
// last block are reused after the execution.
type arena[T any] struct {
	// values is the current block. values[:used] are in use.
	values []T
	used   int
}

const (
	// A block has minBlock to maxBlock values, or more if one list needs more.
	minBlock = 4
	maxBlock = 64
	// maxReused is the greatest size, in values, of a block that is reused for another execution.
	maxReused = 512
)

// Make returns a zero T for a response. If ctx contains an Execution, do not retain the value after the execution, because its
// memory is reused.
func Make[T any](ctx context.Context) *T {
	if x := From(ctx); x != nil {
		return &arenaOf[T](x).take(1)[0]
	}
	return new(T)
}

// MakeList is like Make, but returns a list of n zero values. The list is never nil, because generated code writes nil as null.
func MakeList[T any](ctx context.Context, n int) []T {
	if x := From(ctx); x != nil {
		return arenaOf[T](x).take(n)
	}
	return make([]T, n)
}

func arenaOf[T any](x *Execution) *arena[T] {
	for _, a := range x.arenas {
		if a, ok := a.(*arena[T]); ok {
			return a
		}
	}
	a := &arena[T]{}
	x.arenas = append(x.arenas, a)
	return a
}

func (a *arena[T]) take(n int) []T {
	if a.values == nil || len(a.values)-a.used < n {
		a.values, a.used = make([]T, max(n, min(max(minBlock, 2*len(a.values)), maxBlock))), 0
	}
	from := a.used
	a.used += n
	return a.values[from:a.used:a.used]
}

// empty clears the current block for the next execution, or drops the block if it has more than maxReused values.
func (a *arena[T]) empty() {
	if len(a.values) > maxReused {
		a.values = nil
	} else {
		clear(a.values[:a.used])
	}
	a.used = 0
}
