package loaders

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// GetFresh is like Get, but reads a value again, once, if it is stale or its fresh time has ended while other values arrived. A value
// that is still stale was the newest that could be read. The response is not sent again after the fresh time of the value; after Get, it
// is for a while.
func (l *Loader[K, T]) GetFresh(key K) (reads.Value[*T], error) {
	read, err := l.Get(key)
	if err != nil {
		return read, err
	}
	until := int64(0) // without a fresh time
	if h := read.Handle; h != nil && !read.Stale {
		until = h.FreshUntil()
	}
	if until > read.ReceivedAt.UnixNano() && time.Now().UnixNano() >= until { // a kind may have no fresh time at all
		read.MarkStale(reads.CauseExpired)
	}
	switch {
	case read.Stale && l.failed == nil && !slices.Contains(l.again, key):
		l.stale = slices.DeleteFunc(l.stale, func(k K) bool { return k == key })
		l.again, l.missing, l.pending = append(l.again, key), append(l.missing, key), true
		l.results[l.index[key]] = reads.Result[*T]{Err: ErrPending}
		return reads.Value[*T]{}, ErrPending
	case read.Stale:
		l.dependencies.Record(nil)
	case until != 0:
		l.dependencies.Until(time.Unix(0, until))
	}
	return read, nil
}

// FreshBook is like Book, but reads a stale book of the cache again first; see Loader.GetFresh.
func (s *Set) FreshBook(tokenID string, depth int) (reads.Value[*market.Book], error) {
	if read, err := s.Book(tokenID, depth); err != nil {
		return read, err
	}
	return s.books.GetFresh(queries.Book{TokenID: tokenID, Depth: s.depths[tokenID]})
}
