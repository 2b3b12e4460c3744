package rest

import (
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// PointsOfDays returns the points of the UTC days in a period, oldest first. The first and the last day are in the period. If several
// points have the same time, the last of them counts. PointsOfDays notes points on other days. The result uses the memory of points.
func PointsOfDays(points []market.PricePoint, from, to market.Date, note func(string)) []market.PricePoint {
	kept := slices.DeleteFunc(points, func(p market.PricePoint) bool {
		day := market.DateOf(p.Timestamp)
		if day < from || day > to {
			note("point on another day")
			return true
		}
		return false
	})
	// The sort is stable, so points with the same time stay in the order of the response.
	slices.SortStableFunc(kept, func(a, b market.PricePoint) int { return a.Timestamp.Compare(b.Timestamp) })
	distinct := kept[:0]
	for _, p := range kept {
		if i := len(distinct) - 1; i >= 0 && distinct[i].Timestamp.Equal(p.Timestamp) {
			distinct[i] = p
			continue
		}
		distinct = append(distinct, p)
	}
	return distinct
}

// ReadHistories answers queries for price histories. It calls read once for each period, with the tokens of all queries for the
// period. The function read must return a result for each token, even if it also returns an error. If all calls of read failed,
// ReadHistories also returns an error. A query whose first day is after its last day gets an error without a call.
func ReadHistories(list []queries.PriceHistory, read func(from, to market.Date, tokenIDs []string) ([]upstream.Result[*market.PriceHistory], error)) ([]upstream.Result[*market.PriceHistory], error) {
	type days struct{ from, to market.Date }
	placesByDays := make(map[days][]int)
	results := make([]upstream.Result[*market.PriceHistory], len(list))
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
