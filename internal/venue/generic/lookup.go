package generic

import (
	"context"
	"errors"
	"sync/atomic"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// maxBisectCalls bounds the calls that read the parts of one refused list. 12 calls are enough to find one bad id among 64 ids,
// because the client halves the list six times and makes two calls each time.
const maxBisectCalls = 12

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
	endpoint reqctx.Endpoint
	// list is the name of the parameter for several ids. If it is empty, ids are requested one by one.
	list string
	// single has the names of the parameter for one id. There are two names only until the setting is decided. If the venue does not
	// find an id by the first name, the client uses the second. If list has a name and single has none, one id is a list of one.
	single []string
	// setting is the setting that gave list its name. It is settings if the venue's documentation gives it.
	setting setting
	decode  func(payload wire.Value, ids []string, drift *rest.Drift) (batchValues[T], error)
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

// readInBatches splits keys into lists that each fit into one call, and reads these lists. Without a list parameter, it reads each
// key with its own call, and starts no further call after RATE_LIMITED. It returns an error only if every call failed.
func (l *lookup[T]) readInBatches(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	if l.list == "" {
		return readUntilLimited(out, func(i int) error { return l.readOne(ctx, c, keys[i:i+1], out[i:i+1]) })
	}
	ends := c.splitEnds(l.endpoint, keys)
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

// readBatch reads keys with the list parameter. If the venue refuses every list, the answer contradicts the setting.
func (l *lookup[T]) readBatch(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	b := bisection{callsLeft: maxBisectCalls}
	err := l.bisect(ctx, c, keys, out, &b)
	if err == nil || !b.refused || b.answered || l.setting == settings {
		return err
	}
	err = c.contradiction(l.endpoint, l.setting, "the venue refuses lists")
	for i := range out {
		out[i] = market.Result[*T]{Err: err}
	}
	return err
}

// readOne reads one key, the only element of keys, and tries the names of the single parameter one after the other. It stops when
// the venue finds the key, or when a call fails for another reason than the name. If no name finds the key, the result is the first
// response without an error, or the last refusal.
func (l *lookup[T]) readOne(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) (err error) {
	for i, name := range l.single {
		var result [1]market.Result[*T]
		got := l.call(ctx, c, name, keys, result[:])
		if i == 0 || err != nil || got.answered > 0 { // a response without the value is better than a refusal
			err, out[0] = got.err, result[0]
		}
		switch {
		case got.answered > 0:
			return nil
		case got.err != nil && !rest.RefusesForm(got.err):
			out[0] = result[0]
			return got.err
		}
	}
	return err
}

type bisection struct {
	callsLeft int
	// refused reports that the venue refused a list of several keys. answered reports that the venue answered a list.
	refused, answered bool
}

// bisect reads keys with the list parameter. If the venue refuses the list because of its length or because of one bad id, bisect
// reads the two halves of the list separately. Then the good ids do not fail together with the bad id. If b.callsLeft is less than
// 2, bisect does not split the list, and all ids of the list fail.
func (l *lookup[T]) bisect(ctx context.Context, c *Client, keys []string, out []market.Result[*T], b *bisection) error {
	if len(keys) == 1 && len(l.single) > 0 {
		return l.readOne(ctx, c, keys, out)
	}
	got := l.call(ctx, c, l.list, keys, out)
	b.answered = b.answered || got.err == nil
	if got.err == nil || len(keys) == 1 {
		return got.err
	}
	tooLong := urlTooLong(got.err)
	switch {
	case tooLong:
		c.Report(l.endpoint, rest.Drift{"contradicts " + settingMaxURL.String()})
	case !rest.RefusesForm(got.err):
		return got.err
	default:
		b.refused = true
	}
	if b.callsLeft < 2 || !tooLong && !rest.Refused(got.err) {
		return got.err
	}
	b.callsLeft -= 2
	half := len(keys) / 2
	return rest.ErrorIfAllFailed([]error{l.bisect(ctx, c, keys[:half], out[:half], b), l.bisect(ctx, c, keys[half:], out[half:], b)})
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
}

// call makes one call and writes a result for each key. An endpoint that does not know the only key has no value for it. But if
// spreads responds with 404, the endpoint may be missing, so the result is an error.
func (l *lookup[T]) call(ctx context.Context, c *Client, parameter string, keys []string, out []market.Result[*T]) callResult {
	rq := &rest.Request{Endpoint: l.endpoint, Keys: len(keys)}
	rq.Query.List(parameter, keys)
	payload, err := c.Get(ctx, rq)
	if len(keys) == 1 && l.endpoint != reqctx.EndpointSpreads && (market.CodeOf(err) == market.CodeNotFound || err == nil && payload.IsNull()) {
		out[0] = market.Result[*T]{}
		return callResult{}
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
	return callResult{answered: len(got.byID)}
}
