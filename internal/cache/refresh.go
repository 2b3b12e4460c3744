package cache

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// Refresh fetches the stale entries of keys in the background, with the fewest calls. It skips entries that must not be refreshed
// yet; see entry.refreshAt.
func (s *store[K, T]) Refresh(ctx context.Context, keys []K) {
	now := s.clock.Now()
	var due []K
	var stale []*entry[T]
	for i, key := range keys {
		e := s.get(key)
		if e == nil || e.fresh(now) || !e.claimRefresh(now) {
			continue
		}
		if s.nested != nil && e.read.Value != nil {
			key = s.nested.widen(key, e.read.Value)
		}
		if due == nil {
			due, stale = make([]K, 0, len(keys)-i), make([]*entry[T], 0, len(keys)-i)
		}
		due, stale = append(due, key), append(stale, e)
	}
	if len(due) > 0 {
		s.refresh(ctx, due, stale)
	}
}

// RefreshKeys is Refresh for keys of market.Handles.
func (s *store[K, T]) RefreshKeys(ctx context.Context, keys []any) {
	typed := make([]K, len(keys))
	for i, key := range keys {
		typed[i] = key.(K)
	}
	s.Refresh(ctx, typed)
}

// claimRefresh reports whether the calling function must refresh the entry. After claimRefresh has returned true, it returns false
// until the refresh has ended and reads.RefreshPause has passed.
func (e *entry[T]) claimRefresh(now time.Time) bool {
	due := e.refreshAt.Load()
	return now.UnixNano() >= due && e.refreshAt.CompareAndSwap(due, never)
}

// refresh fetches the keys of stale entries in the background. It gives up after refreshTimeout. As it outlives the request of ctx, it
// copies what it needs of the request.
func (s *store[K, T]) refresh(ctx context.Context, keys []K, stale []*entry[T]) {
	caller := request.From(ctx).Caller
	var credentials *market.Credentials
	if s.routes[0].private { // public data is read without credentials
		credentials = request.CredentialsFrom(ctx)
	}
	s.tasks.start(func() {
		wait, cancel := context.WithTimeout(s.tasks.ctx, refreshTimeout)
		defer cancel()
		results := s.fetch(request.With(wait, func(r *request.Request) { r.Identify(caller, credentials) }), keys, true)
		again := s.clock.Now().Add(reads.RefreshPause).UnixNano()
		for i, e := range stale {
			if err := results[i].Err; err != nil {
				e.failure.Store(uint32(reads.CauseOf(err)))
			}
			e.refreshAt.Store(again) // matters only if the refresh failed, because a successful refresh replaces the entry
		}
	})
}
