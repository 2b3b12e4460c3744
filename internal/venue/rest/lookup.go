package rest

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

// Values maps each requested id to its result. An id that the venue does not know has no entry.
type Values[T any] map[string]market.Result[*T]

// Put stores the value of a row. If the row is bad, Put stores the error of the row instead.
func (v Values[T]) Put(id string, value *T, r *wire.Row) {
	if r.Err != nil {
		r.Note("bad element")
		v[id] = market.Result[*T]{Err: r.Err}
		return
	}
	v[id] = market.Result[*T]{Value: value}
}

// Lookup reads values by their ids.
type Lookup[T any] struct {
	Client   *Client
	Endpoint upstream.Endpoint
	// Batch is the greatest number of ids in one call.
	Batch int
	// IsID reports whether a text has the form of an id. Read does not send other texts, because the venue cannot know them.
	IsID func(string) bool
	// Call reads the values of ids, and passes the drift of the response to note.
	Call func(ctx context.Context, ids []string, note func(string)) (Values[T], error)
}

// Read returns a result for each id, in the order of ids. The Value of an unknown id is nil. If Read has sent all ids and every
// call has failed, Read also returns an error. Otherwise, it returns errors only in the results.
func (l Lookup[T]) Read(ctx context.Context, ids []string) ([]market.Result[*T], error) {
	results := make(Values[T], len(ids))
	var keys []string
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := CheckID(l.Endpoint, id); err != nil {
			results[id] = market.Result[*T]{Err: err}
		} else if err := l.Client.Refusal(l.Endpoint, id); err != nil {
			results[id] = market.Result[*T]{Err: err}
		} else if l.IsID(id) {
			keys = append(keys, id)
		}
	}
	lists := slices.Collect(slices.Chunk(keys, l.Batch))
	found, errs := make([]Values[T], len(lists)), make([]error, len(lists))
	ForEach(len(lists), func(i int) {
		var drift Drift
		found[i], errs[i] = l.Call(ctx, lists[i], drift.Add)
		l.Client.Report(l.Endpoint, drift)
	})
	for i, list := range lists {
		errs[i] = l.record(list, found[i], errs[i], results)
	}
	out := make([]market.Result[*T], len(ids))
	for i, id := range ids {
		out[i] = results[id]
	}
	if len(seen) > len(keys) {
		return out, nil // some ids were not sent, so the errors of the calls are only in the results
	}
	return out, ErrorIfAllFailed(errs)
}

// record writes the results of one call to results, and starts or ends the backoff of each id.
func (l Lookup[T]) record(list []string, found Values[T], failed error, results Values[T]) error {
	if failed != nil {
		failed = l.Client.Record(l.Endpoint, BadIfNotFound(l.Endpoint, failed), list...)
		for _, id := range list {
			results[id] = market.Result[*T]{Err: failed}
		}
		return failed
	}
	var fine []string
	for _, id := range list {
		r := found[id]
		if r.Err != nil {
			r.Err = l.Client.Record(l.Endpoint, r.Err, id)
		} else {
			fine = append(fine, id)
		}
		results[id] = r
	}
	_ = l.Client.Record(l.Endpoint, nil, fine...)
	return nil
}
