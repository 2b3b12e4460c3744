package rest

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// ReadHistories answers queries for price histories. It calls read once for each period, with the tokens of all queries for the
// period. The function read must return a result for each token, even if it also returns an error. If all calls of read failed,
// ReadHistories also returns an error. A query whose first day is after its last day gets an error without a call.
func ReadHistories(list []queries.PriceHistory, read func(from, to market.Date, tokenIDs []string) ([]market.Result[*market.PriceHistory], error)) ([]market.Result[*market.PriceHistory], error) {
	type days struct{ from, to market.Date }
	placesByDays := make(map[days][]int)
	results := make([]market.Result[*market.PriceHistory], len(list))
	for i, q := range list {
		if q.From > q.To {
			results[i].Err = BadInput(upstream.EndpointPriceHistory, "the first day is after the last")
			continue
		}
		placesByDays[days{q.From, q.To}] = append(placesByDays[days{q.From, q.To}], i)
	}
	var errs []error
	for span, places := range placesByDays {
		ids := make([]string, len(places))
		for i, place := range places {
			ids[i] = list[place].TokenID
		}
		got, err := read(span.from, span.to, ids)
		errs = append(errs, err)
		for i, place := range places {
			results[place] = got[i]
		}
	}
	return results, ErrorIfAllFailed(errs)
}
