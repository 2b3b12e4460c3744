package generic

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	// relearnAfter is the time from the venue's refusal of a parameter until the client tries this parameter again.
	relearnAfter = 10 * time.Minute
	// maxBisectCalls bounds the calls that read the parts of one refused list. 12 calls are enough to find one bad id among 64 ids,
	// because the client halves the list six times and makes two calls each time.
	maxBisectCalls = 12
)

// support is what the client has learned about a list parameter or an endpoint. A support is safe for concurrent use.
type support struct {
	name string
	// confirmed reports that a response has shown that the venue supports the parameter or endpoint.
	confirmed atomic.Bool
	// disabledUntil is the time at which the parameter or endpoint may be used again, in nanoseconds since 1970.
	disabledUntil atomic.Int64
}

func (p *support) usable(now time.Time) bool { return now.UnixNano() >= p.disabledUntil.Load() }

// disable makes usable return false for relearnAfter.
func (p *support) disable(now time.Time) {
	p.confirmed.Store(false)
	p.disabledUntil.Store(now.Add(relearnAfter).UnixNano())
}

// batchValues contains the values of one response, by requested id.
type batchValues[T any] struct {
	byID map[string]market.Result[*T]
	// unattributed reports that an element had no readable id. Such an element may belong to any requested id that has no value.
	unattributed bool
	// otherIDs reports that the response also contained ids that were not requested.
	otherIDs bool
}

func newBatchValues[T any](n int) batchValues[T] {
	return batchValues[T]{byID: make(map[string]market.Result[*T], n)}
}

type lookup[T any] struct {
	endpoint upstream.Endpoint
	// list is the name of the parameter for several ids. single is the parameter for one id.
	list   string
	single *parameter
	// support is what the client has learned about the list parameter. It is nil if the venue documents the parameter.
	support *support
	// If preferSingle is true, a read of one id tries the single parameter first. If preferSingle is false, such a read tries the
	// list parameter first.
	preferSingle bool
	decode       func(payload wire.Value, ids []string, drift *rest.Drift) (batchValues[T], error)
}

// read returns a result for each id, in the order of ids. If every call failed, and no id was waiting for the end of its backoff,
// read also returns an error. Otherwise, read returns errors only in the results.
func (l *lookup[T]) read(ctx context.Context, c *Client, ids []string) ([]market.Result[*T], error) {
	results := make([]market.Result[*T], len(ids))
	keys := make([]string, 0, len(ids))
	indexes := make(map[string]int, len(ids))
	refused := false
	for i, id := range ids {
		if _, repeated := indexes[id]; repeated {
			continue
		}
		if err := rest.CheckID(l.endpoint, id); err != nil {
			results[i].Err = err
			continue
		}
		if err := c.Refusal(l.endpoint, id); err != nil {
			results[i].Err, refused = err, true
			continue
		}
		indexes[id] = len(keys)
		keys = append(keys, id)
	}
	answered := make([]market.Result[*T], len(keys))
	err := l.readInBatches(ctx, c, keys, answered)
	err = l.recordOutcomes(c, err, keys, answered)
	for i, id := range ids {
		if results[i].Err == nil {
			results[i] = answered[indexes[id]]
		}
	}
	if refused {
		err = nil // some ids were not sent, so the errors of the calls are only in the results
	}
	return results, err
}

// recordOutcomes passes the results of the keys to c.Record, and replaces each error by the error that c.Record returns. It passes
// all keys of a failed call together, so that they get the same backoff. If err is not nil, every call failed, and recordOutcomes
// returns the new error of the first key.
func (l *lookup[T]) recordOutcomes(c *Client, err error, keys []string, results []market.Result[*T]) error {
	failed := make(map[error][]int)
	for i := range results {
		failed[results[i].Err] = append(failed[results[i].Err], i)
	}
	for cause, places := range failed {
		ids := make([]string, len(places))
		for i, place := range places {
			ids[i] = keys[place]
		}
		recorded := c.Record(l.endpoint, cause, ids...)
		for _, place := range places {
			results[place].Err = recorded
		}
	}
	if err != nil && len(results) > 0 {
		return results[0].Err // every call failed
	}
	return err
}

// readInBatches splits keys into lists that each fit into one call, and reads these lists. If the venue does not support the list
// parameter, readInBatches reads each key with its own call. It returns an error only if every call failed.
func (l *lookup[T]) readInBatches(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	if l.support != nil && !l.support.usable(c.Now()) {
		return l.readEach(ctx, c, keys, out)
	}
	ends := l.splitEnds(c, keys)
	errs := make([]error, len(ends))
	rest.ForEach(len(errs), func(i int) {
		from := 0
		if i > 0 {
			from = ends[i-1]
		}
		errs[i] = l.readBatch(ctx, c, keys[from:ends[i]], out[from:ends[i]])
	})
	return rest.ErrorIfAllFailed(errs)
}

func (l *lookup[T]) readBatch(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	if len(keys) == 1 && l.usesSingle() {
		return l.readOne(ctx, c, keys, out).err
	}
	if l.support == nil || l.support.confirmed.Load() {
		d := bisection{callsLeft: maxBisectCalls}
		err := l.bisect(ctx, c, keys, out, &d)
		if l.support != nil && d.listRefused && !d.listAnswered {
			l.support.confirmed.Store(false)
		}
		return err
	}
	got := l.call(ctx, c, l.list, keys, out)
	switch {
	case got.err == nil && got.answered > 0:
		l.support.confirmed.Store(true)
		return nil
	case urlTooLong(got.err) && len(keys) > 1:
		c.urlLimits[l.endpoint].shorten(c, l.endpoint, keys)
		return l.readInBatches(ctx, c, keys, out)
	case got.err != nil && !rest.RefusesForm(got.err), got.unattributed:
		return got.err
	}
	return l.probe(ctx, c, keys, out, got.err)
}

// usesSingle reports whether a read of one id tries the single parameter first. The result is preferSingle, with one exception: if
// the venue is known to support the list parameter, but the name of the single parameter is unknown, the result is false.
func (l *lookup[T]) usesSingle() bool {
	return l.preferSingle && (l.support == nil || !l.support.confirmed.Load() || len(l.single.candidates()) == 1)
}

// readOne reads one key, the only element of keys. It tries the names of the single parameter one after the other. It stops when
// the venue finds the key, or when a call fails for another reason than the name. If no name finds the key, readOne returns the
// first response without an error, which has no value for the key. If the venue refused every call, readOne returns the last
// refusal.
func (l *lookup[T]) readOne(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) (best callResult) {
	names := l.single.candidates()
	for i, name := range names {
		var result [1]market.Result[*T]
		got := l.call(ctx, c, name, keys, result[:])
		if i == 0 || best.err != nil || got.answered > 0 { // a response without the value is better than a refusal
			best, out[0] = got, result[0]
		}
		switch {
		case got.answered > 0:
			l.single.confirm(name)
			return got
		case got.err != nil && !rest.RefusesForm(got.err):
			out[0] = result[0]
			return got
		case got.err != nil && len(names) == 1:
			l.single.doubt()
		}
	}
	return best
}

// maxProbes is the greatest number of ids that probe requests one by one to find out why a list call failed.
const maxProbes = 2

// probe is called after a list call that the venue refused, or that found none of the ids. If the list call found none of the ids,
// listErr is nil. out contains the results of the list call.
//
// probe requests the first ids one by one to find out whether the cause is the list parameter or the ids. If a call for a single id
// succeeds, the cause is the list parameter, and probe also requests the remaining ids one by one. If listErr is nil, a call counts
// as a success only if it finds the id.
func (l *lookup[T]) probe(ctx context.Context, c *Client, keys []string, out []market.Result[*T], listErr error) error {
	probes := maxProbes
	if listErr != nil && !rest.Refused(listErr) {
		probes = 1
	}
	var last error
	settled, i := false, 0
	for ; i < min(probes, len(keys)) && !settled; i++ {
		got := l.readOne(ctx, c, keys[i:i+1], out[i:i+1])
		last = got.err
		settled = got.err == nil && (listErr != nil || got.answered > 0)
	}
	switch {
	case settled:
		_ = l.readEach(ctx, c, keys[i:], out[i:])
		if provesListUnsupported(out) {
			l.support.disable(c.Now())
			c.Log().Info("the venue refuses a list parameter: ids are requested one by one", "endpoint", l.endpoint.String(), "parameter", l.list)
		}
		return nil
	case last == nil:
		return nil // the single parameter does not find the ids either
	case listErr == nil && rest.RefusesForm(last):
		clear(out[:i]) // the venue supports only the list parameter, which has found none of the ids
		return nil
	case listErr == nil:
		listErr = last
	}
	for ; i < len(out); i++ {
		out[i] = market.Result[*T]{Err: listErr}
	}
	return listErr
}

// provesListUnsupported is called with the results of calls for single ids, after the venue has refused the list of these ids or
// found none of them. It reports whether the venue does not support the list parameter. This is certain if the venue found at least
// one single id and refused none of the calls.
func provesListUnsupported[T any](results []market.Result[*T]) bool {
	hits := 0
	for _, r := range results {
		if r.Err != nil && rest.RefusesForm(r.Err) {
			return false
		}
		if r.Value != nil {
			hits++
		}
	}
	return hits > 0
}

type bisection struct {
	callsLeft int
	// listRefused reports that the venue refused a list of several keys. listAnswered reports that the venue answered another list
	// of several keys.
	listRefused, listAnswered bool
	// halvesAnswered reports that the venue answered both halves of a refused list.
	halvesAnswered bool
}

// bisect reads keys with a list parameter that the venue supports. If the venue refuses the list because of its length or because
// of one bad id, bisect reads the two halves of the list separately. Then the good ids do not fail together with the bad id. If
// d.callsLeft is less than 2, bisect does not split a list with a bad id, and all ids of the list fail.
func (l *lookup[T]) bisect(ctx context.Context, c *Client, keys []string, out []market.Result[*T], d *bisection) error {
	if len(keys) == 1 && l.usesSingle() {
		return l.readOne(ctx, c, keys, out).err
	}
	got := l.call(ctx, c, l.list, keys, out)
	if len(keys) == 1 {
		return got.err
	}
	d.listAnswered = d.listAnswered || got.err == nil
	switch {
	case urlTooLong(got.err):
		c.urlLimits[l.endpoint].shorten(c, l.endpoint, keys)
	case got.err == nil || !rest.RefusesForm(got.err):
		return got.err
	default:
		d.listRefused = true
		if d.callsLeft < 2 || !rest.Refused(got.err) {
			return got.err
		}
		d.callsLeft -= 2
	}
	half := len(keys) / 2
	errs := []error{l.bisect(ctx, c, keys[:half], out[:half], d), l.bisect(ctx, c, keys[half:], out[half:], d)}
	if errs[0] == nil && errs[1] == nil && half > 1 && !urlTooLong(got.err) && !d.halvesAnswered {
		c.urlLimits[l.endpoint].shorten(c, l.endpoint, keys) // the venue accepted both halves, so the list was too long
	}
	d.halvesAnswered = d.halvesAnswered || errs[0] == nil && errs[1] == nil
	return rest.ErrorIfAllFailed(errs)
}

// readEach reads each key with its own call. After RATE_LIMITED, readEach starts no further call.
func (l *lookup[T]) readEach(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	return readUntilLimited(out, func(i int) error { return l.readOne(ctx, c, keys[i:i+1], out[i:i+1]).err })
}

// readUntilLimited calls read for each index of results, until a call returns RATE_LIMITED. All elements without a call get this
// error. If every element has an error, readUntilLimited returns the error of the first element.
func readUntilLimited[T any](results []market.Result[T], read func(i int) error) error {
	errs := make([]error, len(results))
	var limited atomic.Pointer[error]
	rest.ForEach(len(results), func(i int) {
		if known := limited.Load(); known != nil {
			results[i], errs[i] = market.Result[T]{Err: *known}, *known
		} else if errs[i] = read(i); market.CodeOf(errs[i]) == market.CodeRateLimited {
			limited.Store(&errs[i])
		}
	})
	return rest.ErrorIfAllFailed(errs)
}

type callResult struct {
	// err is the error of the call as a whole, not of an element.
	err error
	// answered is the number of keys that have an element in the response, good or bad.
	answered int
	// unattributed reports that an element had no readable id; see batchValues.
	unattributed bool
}

// call makes one call and writes a result for each key.
func (l *lookup[T]) call(ctx context.Context, c *Client, parameter string, keys []string, out []market.Result[*T]) callResult {
	rq := &rest.Request{Endpoint: l.endpoint, Keys: len(keys)}
	rq.Query.List(parameter, keys)
	payload, err := c.Get(ctx, rq)
	if len(keys) == 1 && (parameter != l.list || l.support.confirmed.Load()) {
		if market.CodeOf(err) == market.CodeNotFound || err == nil && payload.IsNull() {
			out[0] = market.Result[*T]{}
			return callResult{}
		}
	}
	var drift rest.Drift
	var got batchValues[T]
	if err == nil {
		if got, err = l.decode(payload, keys, &drift); err == nil && len(got.byID) == 0 && got.otherIDs {
			err = rest.UnknownForm(l.endpoint, "the answer is about other ids")
		}
	}
	c.Report(l.endpoint, drift)
	if err != nil {
		err = rest.BadIfNotFound(l.endpoint, err)
		for i := range out {
			out[i] = market.Result[*T]{Err: err}
		}
		return callResult{err: err}
	}
	for i, key := range keys {
		r, ok := got.byID[key]
		if !ok && got.unattributed {
			r.Err = rest.BadElement(l.endpoint, errors.New("an element has no readable id, so it may belong to this id"))
		}
		out[i] = r
	}
	return callResult{answered: len(got.byID), unattributed: got.unattributed}
}
