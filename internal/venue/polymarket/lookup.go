package polymarket

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// lookup returns a rest.Lookup that passes lists of ids to the function read. If Polymarket refuses a list because of one of the
// ids, the rest.Lookup reads the halves of the list separately. An id that Polymarket does not know alone has no result.
func lookup[T any](c *rest.Client, e upstream.Endpoint, batch int, isID func(string) bool, read func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[T], error)) rest.Lookup[T] {
	return rest.Lookup[T]{
		Client: c, Endpoint: e, Batch: batch, IsID: isID, Halve: rest.Refused,
		Call: func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[T], error) {
			got, err := read(ctx, call, ids, note)
			if len(ids) == 1 && market.CodeOf(err) == market.CodeNotFound {
				return nil, nil
			}
			return got, err
		},
	}
}

func formError(e upstream.Endpoint, err error) error {
	if err == nil {
		return nil
	}
	return rest.UnknownForm(e, err.Error())
}
