// Package reads contains what a read from the cache or the venue brings along: where and when the value was read, whether it is stale,
// and a handle that tells when it changes.
package reads

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

// Meta describes where and when a value was read.
type Meta struct {
	// AsOf is the venue's timestamp of the value. It is zero if the venue sent no timestamp.
	AsOf time.Time
	// ReceivedAt is the time when this service received the value from the venue.
	ReceivedAt time.Time
	Source     market.Source
	// Stale reports whether the value was no longer fresh when it was read.
	Stale bool
	// Cause is why the value is stale. If Stale is false, Cause has no meaning.
	Cause StaleCause
	// Handle refers to the cache entry of the value. It is nil if the value has no cache entry.
	Handle *Handle
}

// MarkStale marks the value as stale.
func (m *Meta) MarkStale(cause StaleCause) { m.Stale, m.Cause = true, cause }

// StaleCause is why a value is stale.
type StaleCause uint8

// The causes, from the mildest to the most severe.
const (
	// CauseExpired means that a REST value is too old and is being refreshed.
	CauseExpired StaleCause = iota
	// CauseChanged means that the stream has announced a change that the REST API does not return yet.
	CauseChanged
	// CauseStreamDown means that the stream is disconnected, silent or resyncing.
	CauseStreamDown
	// CauseThrottled means that a rate limit of the venue or of this service prevents the refresh.
	CauseThrottled
	// CauseUpstreamDown means that the REST API does not answer, or answers with errors.
	CauseUpstreamDown
)

// CauseOf returns the StaleCause of a value whose refresh failed with err.
func CauseOf(err error) StaleCause {
	if market.CodeOf(err) == market.CodeRateLimited {
		return CauseThrottled
	}
	return CauseUpstreamDown
}

// Value is a value with its Meta. If the venue does not have the value, Value is the zero T, and Meta still describes the read.
type Value[T any] struct {
	Value T
	Meta
}

// Result is the result of a read for one of several keys: a value or an error.
type Result[T any] struct {
	Value Value[T]
	Err   error
}

// Source reads values of one kind by key, from a cache or from the venue.
type Source[K comparable, T any] interface {
	// Lookup writes the results of cached keys to out. It appends the indexes of the other keys to missing and returns the extended
	// slice. Lookup never calls the venue.
	Lookup(ctx context.Context, keys []K, out []Result[*T], missing []int) []int
	// Refresh fetches the stale entries of keys in the background.
	Refresh(ctx context.Context, keys []K)
	// Calls returns the number of calls to the venue that Fetch would make if none of the keys was cached or being fetched.
	Calls(keys []K) int
	// Batches splits keys into groups whose values arrive together: all keys that one endpoint reads as a list, or single keys. It may
	// change the order of keys.
	Batches(keys []K) [][]K
	// Fetch fetches keys from the venue. It returns the results, in the order of keys, at the latest when ctx ends.
	Fetch(ctx context.Context, keys []K) []Result[*T]
}

// Combine returns the Meta of a value that is computed from the values with the given Metas. The result has the oldest times of
// these Metas. If one of them is stale, the result is stale with the most severe cause. Combine ignores a Meta without ReceivedAt.
func Combine(metas ...Meta) Meta {
	out := Meta{Source: market.SourceComputed}
	for _, m := range metas {
		if m.ReceivedAt.IsZero() {
			continue
		}
		if m.Stale {
			out.MarkStale(max(out.Cause, m.Cause))
		}
		if out.ReceivedAt.IsZero() || m.ReceivedAt.Before(out.ReceivedAt) {
			out.ReceivedAt = m.ReceivedAt
		}
		if !m.AsOf.IsZero() && (out.AsOf.IsZero() || m.AsOf.Before(out.AsOf)) {
			out.AsOf = m.AsOf
		}
	}
	return out
}
