package polymarket

import (
	"cmp"
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// maxBisections bounds the number of further calls after Polymarket has refused a list because of one of its ids.
const maxBisections = 12

// reader reads the values of ids with one call.
type reader[T any] func(ctx context.Context, ids []string, note func(string)) (rest.Values[T], error)

// lookup returns a rest.Lookup that passes lists of ids to the function read. If Polymarket refuses a list because of one of the
// ids, the rest.Lookup reads the halves of the list separately.
func lookup[T any](c *rest.Client, e upstream.Endpoint, batch int, isID func(string) bool, read reader[T]) rest.Lookup[T] {
	return rest.Lookup[T]{
		Client: c, Endpoint: e, Batch: batch, IsID: isID,
		Call: func(ctx context.Context, ids []string, note func(string)) (rest.Values[T], error) {
			left := maxBisections
			return read.bisect(ctx, e, ids, note, &left)
		},
	}
}

// bisect reads ids with one call. If Polymarket refuses the list because of one of the ids, bisect reads the two halves of the
// list separately. If Polymarket does not know the only id of a list, bisect returns no result for the id. bisect may make up to
// *left further calls.
func (read reader[T]) bisect(ctx context.Context, e upstream.Endpoint, ids []string, note func(string), left *int) (rest.Values[T], error) {
	got, err := read(ctx, ids, note)
	switch {
	case err == nil:
		for id, r := range got {
			if r.Err != nil && market.CodeOf(r.Err) == market.CodeInternal { // the functions that read elements return errors without a code
				got[id] = market.Result[*T]{Err: rest.BadElement(e, r.Err)}
			}
		}
		return got, nil
	case len(ids) == 1 && market.CodeOf(err) == market.CodeNotFound:
		return nil, nil
	case len(ids) == 1 || !rest.Refused(err) || *left < 2:
		return nil, rest.BadIfNotFound(e, err)
	}
	*left -= 2
	half := len(ids) / 2
	out := make(rest.Values[T], len(ids))
	for _, part := range [][]string{ids[:half], ids[half:]} {
		found, err := read.bisect(ctx, e, part, note, left)
		for _, id := range part {
			if r, ok := found[id]; ok || err != nil {
				r.Err = cmp.Or(err, r.Err)
				out[id] = r
			}
		}
	}
	return out, nil
}

// formError returns the rest.UnknownForm error of a response. err is the error of the function that read the response. If err is
// nil, formError returns nil.
func formError(e upstream.Endpoint, err error) error {
	if err == nil {
		return nil
	}
	return rest.UnknownForm(e, err.Error())
}
