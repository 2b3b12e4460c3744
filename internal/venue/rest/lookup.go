package rest

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

// Values maps ids to their results. A requested id that the venue does not know has no entry. An element without a readable id has
// the entry "", and elements of other ids may share the entry OtherID.
type Values[T any] map[string]upstream.Result[*T]

// OtherID is a text that is no id.
const OtherID = "\x00"

// ReadByID reads a list of elements, each with its id in a field. If several elements have the same id, the last one counts.
func ReadByID[T any](list []wire.Value, field wire.Field, note func(string), read func(r *wire.Row, id string) *T) Values[T] {
	values := make(Values[T], len(list))
	for _, v := range list {
		r := wire.NewRow(v, note)
		id := r.RequireID(field)
		if id == "" {
			note("element without a readable id")
			values[""] = upstream.Result[*T]{}
			continue
		}
		values.Put(id, read(r, id), r)
	}
	return values
}

// Put stores the value of a row. If the row is bad, Put stores the error of the row instead.
func (v Values[T]) Put(id string, value *T, r *wire.Row) {
	if r.Err != nil {
		r.Note("bad element")
		v[id] = upstream.Result[*T]{Err: r.Err}
		return
	}
	v[id] = upstream.Result[*T]{Value: value}
}

// Missing returns the ids without a result. It returns nil if an element has no readable id, because it may belong to any of them.
func (v Values[T]) Missing(ids []string) (missing []string) {
	if _, ok := v[""]; ok {
		return nil
	}
	for _, id := range ids {
		if _, ok := v[id]; !ok {
			missing = append(missing, id)
		}
	}
	return missing
}

// attribute gives an error to each id without a result if an element has no readable id. It returns an error if all elements belong
// to ids that were not requested.
func (v Values[T]) attribute(e upstream.Endpoint, ids []string) error {
	_, nameless := v[""]
	delete(v, "")
	missing := v.Missing(ids)
	switch {
	case nameless:
		for _, id := range missing {
			v[id] = upstream.Result[*T]{Err: errNoID}
		}
	case len(missing) == len(ids) && len(v) > 0:
		return UnknownForm(e, "the answer is about other ids")
	}
	return nil
}

var errNoID = errors.New("an element has no readable id, so it may belong to this id")

// Lookup reads values by their ids.
type Lookup[T any] struct {
	Client   *Client
	Endpoint upstream.Endpoint
	// Batch is the greatest number of ids in one call. Split may make shorter lists of the ids for one call each. It may be nil.
	Batch int
	Split func(ids []string) [][]string
	// IsID reports whether a text has the form of an id. Read does not send other texts, because the venue cannot know them. It may be
	// nil.
	IsID func(string) bool
	// Call reads the values of ids, and passes the drift of the response to note.
	Call func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (Values[T], error)
	// Halve reports whether the error of a list may be about its length or one bad id. Then Read reads the halves of the list
	// separately, so that the good ids do not fail together with the bad id. It may be nil.
	Halve func(err error) bool
}

// maxHalfCalls bounds the calls that read the parts of one refused list. 12 calls are enough to find one bad id among 64 ids, because
// Read halves the list six times and makes two calls each time.
const maxHalfCalls = 12

// Read returns a result for each id, in the order of ids. The Value of an unknown id is nil. After RATE_LIMITED, Read starts no
// further call. If Read has sent all ids and every call has failed, Read also returns an error. Otherwise, it returns errors only in
// the results.
func (l Lookup[T]) Read(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*T], error) {
	results := make(Values[T], len(ids))
	var keys []string
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := CheckID(l.Endpoint, id); err != nil {
			results[id] = upstream.Result[*T]{Err: err}
		} else if err := l.Client.Refusal(l.Endpoint, id); err != nil {
			results[id] = upstream.Result[*T]{Err: err}
		} else if l.IsID == nil || l.IsID(id) {
			keys = append(keys, id)
		}
	}
	lists := l.lists(keys)
	found, errs := make([]Values[T], len(lists)), make([]error, len(lists))
	ForEachUntilLimited(errs, func(i int) (err error) {
		left := maxHalfCalls
		found[i], err = l.read(ctx, call, lists[i], &left)
		return err
	})
	for i, list := range lists {
		errs[i] = l.record(list, found[i], errs[i], results)
	}
	out := make([]upstream.Result[*T], len(ids))
	for i, id := range ids {
		out[i] = results[id]
	}
	if len(seen) > len(keys) {
		return out, nil // some ids were not sent, so the errors of the calls are only in the results
	}
	return out, ErrorIfAllFailed(errs)
}

func (l Lookup[T]) lists(ids []string) [][]string {
	if l.Split != nil {
		return l.Split(ids)
	}
	return slices.Collect(slices.Chunk(ids, l.Batch))
}

// read reads ids with one call, or with two for its halves. It may make up to *left calls for halves.
func (l Lookup[T]) read(ctx context.Context, call upstream.Call, ids []string, left *int) (Values[T], error) {
	var drift Drift
	found, err := l.Call(ctx, call, ids, drift.Add)
	l.Client.Report(l.Endpoint, drift)
	if err == nil {
		err = found.attribute(l.Endpoint, ids)
	}
	if err == nil || len(ids) == 1 || l.Halve == nil || !l.Halve(err) || *left < 2 {
		return found, err
	}
	*left -= 2
	half, out := len(ids)/2, make(Values[T], len(ids))
	var errs []error
	for _, part := range [][]string{ids[:half], ids[half:]} {
		found, err := l.read(ctx, call, part, left)
		for _, id := range part {
			if r, ok := found[id]; ok || err != nil {
				r.Err = cmp.Or(r.Err, BadIfNotFound(l.Endpoint, err))
				out[id] = r
			}
		}
		errs = append(errs, err)
	}
	return out, ErrorIfAllFailed(errs)
}

// record writes the results of one call to results, and starts or ends the backoff of each id.
func (l Lookup[T]) record(list []string, found Values[T], failed error, results Values[T]) error {
	if failed != nil {
		failed = l.Client.Record(l.Endpoint, BadIfNotFound(l.Endpoint, failed), list...)
		for _, id := range list {
			results[id] = upstream.Result[*T]{Err: failed}
		}
		return failed
	}
	var fine []string
	for _, id := range list {
		r := found[id]
		if r.Err != nil {
			if market.CodeOf(r.Err) == market.CodeInternal { // the error of a row has no code
				r.Err = BadElement(l.Endpoint, r.Err)
			}
			r.Err = l.Client.Record(l.Endpoint, r.Err, id)
		} else {
			fine = append(fine, id)
		}
		results[id] = r
	}
	_ = l.Client.Record(l.Endpoint, nil, fine...)
	return nil
}
