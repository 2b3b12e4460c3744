package generic

import (
	"context"
	"errors"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// batchValues contains the values of one response, by requested id.
type batchValues[T any] struct {
	byID rest.Values[T]
	// unattributed reports that an element had no readable id. Such an element may belong to any requested id that has no value.
	unattributed bool
	// otherIDs reports that the response also contained ids that were not requested.
	otherIDs bool
}

func newBatchValues[T any](n int) batchValues[T] {
	return batchValues[T]{byID: make(rest.Values[T], n)}
}

type lookup[T any] struct {
	endpoint upstream.Endpoint
	// list is the name of the parameter for several ids. If it is empty, ids are requested one by one.
	list string
	// single has the names of the parameter for one id. There are two names only until the setting is decided. If the venue does not
	// find an id by the first name, the client uses the second. If list has a name and single has none, one id is a list of one.
	single []string
	// setting is the setting that gave list its name. It is settings if the venue's documentation gives it.
	setting setting
	decode  func(payload wire.Value, ids []string, note func(string)) (batchValues[T], error)
}

// read returns a result for each id, in the order of ids. If the venue refuses every list of several ids, the answer contradicts the
// setting.
func (l *lookup[T]) read(ctx context.Context, call upstream.Call, c *Client, ids []string) ([]market.Result[*T], error) {
	results, err := rest.Lookup[T]{
		Client: c.Client, Endpoint: l.endpoint,
		Split: func(ids []string) [][]string { return c.lists(l.endpoint, ids, l.list == "") },
		Call: func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[T], error) {
			if len(ids) == 1 && len(l.single) > 0 {
				return l.one(ctx, call, c, ids[0], note)
			}
			values, err := l.call(ctx, call, c, l.list, ids, note)
			if urlTooLong(err) {
				note("contradicts " + settingMaxURL.String())
			}
			return values, err
		},
		Halve: func(err error) bool { return rest.Refused(err) || urlTooLong(err) },
	}.Read(ctx, call, ids)
	why, _ := errors.AsType[*rest.CallFailure](err)
	if why == nil || why.Kind != rest.KindRefused && why.Kind != rest.KindShape || l.list == "" || l.setting == settings || !c.decided(l.setting) || len(ids) < 2 {
		return results, err
	}
	err = c.contradiction(l.endpoint, l.setting, "the venue refuses lists")
	for i := range results {
		results[i].Err = err
	}
	return results, err
}

// one reads one id, and tries the names of the single parameter one after the other. It stops when the venue finds the id, or when a
// call fails for another reason than the name. If no name finds the id, the result is the first response without an error, or the
// last refusal.
func (l *lookup[T]) one(ctx context.Context, call upstream.Call, c *Client, id string, note func(string)) (found rest.Values[T], err error) {
	for i, name := range l.single {
		values, failed := l.call(ctx, call, c, name, []string{id}, note)
		if i == 0 || err != nil || len(values) > 0 { // a response without the value is better than a refusal
			found, err = values, failed
		}
		if len(values) > 0 || failed != nil && !rest.RefusesForm(failed) {
			return values, failed
		}
	}
	return found, err
}

// call makes one call. An endpoint that does not know the only id has no value for it. But if spreads responds with 404, the endpoint
// may be missing, so the result is an error.
func (l *lookup[T]) call(ctx context.Context, call upstream.Call, c *Client, parameter string, ids []string, note func(string)) (rest.Values[T], error) {
	rq := &rest.Request{Endpoint: l.endpoint, Keys: len(ids)}
	rq.Query.List(parameter, ids)
	payload, err := c.Get(ctx, call, rq)
	notFound := market.CodeOf(err) == market.CodeNotFound && l.endpoint != upstream.EndpointSpreads
	if len(ids) == 1 && (notFound || err == nil && payload.IsNull()) {
		return nil, nil
	}
	if err != nil {
		return nil, rest.BadIfNotFound(l.endpoint, err)
	}
	got, err := l.decode(payload, ids, note)
	switch {
	case err != nil:
		return nil, err
	case len(got.byID) == 0 && got.otherIDs:
		return nil, rest.UnknownForm(l.endpoint, "the answer is about other ids")
	case got.unattributed:
		got.byID.FailMissing(l.endpoint, ids)
	}
	return got.byID, nil
}
