package loaders

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// GetFresh is like Get, but reads a stale value of the cache again first. A value that is still stale was the newest that could be
// read. The response is not sent again after the fresh time of the value; after Get, it is for a while.
func (l *Loader[K, T]) GetFresh(key K) (reads.Value[*T], error) {
	read, err := l.Get(key)
	i := slices.Index(l.stale, key)
	if err != nil || !read.Stale || i < 0 || l.failed != nil {
		if read.Stale {
			l.dependencies.Record(nil)
		} else if h := read.Handle; h != nil && h.FreshUntil() != 0 {
			l.dependencies.Until(time.Unix(0, h.FreshUntil()))
		}
		return read, err
	}
	l.stale, l.missing, l.pending = slices.Delete(l.stale, i, i+1), append(l.missing, key), true
	l.results[l.index[key]] = reads.Result[*T]{Err: ErrPending}
	return reads.Value[*T]{}, ErrPending
}

// FreshBook is like Book, but reads a stale book of the cache again first; see Loader.GetFresh.
func (s *Set) FreshBook(tokenID string, depth int) (reads.Value[*market.Book], error) {
	if read, err := s.Book(tokenID, depth); err != nil {
		return read, err
	}
	return s.books.GetFresh(queries.Book{TokenID: tokenID, Depth: s.depths[tokenID]})
}
