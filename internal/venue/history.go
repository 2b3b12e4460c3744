package venue

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

var fieldVolumeOfPoint = wire.NewField("volume", "v")

// PriceHistory returns the prices of a token on the UTC days from..to, both included, oldest first. It returns nil if the venue
// does not know the token. Unreadable points are reported in LeftOut. Points on other days are dropped. If the response has
// points but no usable one, the error is UPSTREAM_BAD_RESPONSE. If several points have the same time, the last one in the
// response counts.
func (c *Client) PriceHistory(ctx context.Context, tokenID string, from, to market.Date) (*market.PriceHistory, error) {
	if err := checkID(reqctx.EndpointPriceHistory, tokenID); err != nil {
		return nil, err
	}
	if from > to {
		return nil, badInput(reqctx.EndpointPriceHistory, "the first day is after the last")
	}
	return withBackoff(c, reqctx.EndpointPriceHistory, tokenID, func() (*market.PriceHistory, error) {
		rq := &request{endpoint: reqctx.EndpointPriceHistory, keys: 1}
		rq.query.set("tokenId", tokenID).set("startDate", from.String()).set("endDate", to.String())
		payload, err := c.get(ctx, rq)
		if err != nil || payload.IsNull() {
			return nil, nilIfNotFound(err)
		}
		var n drift
		h, err := decodePriceHistory(payload, tokenID, from, to, &n)
		c.report(reqctx.EndpointPriceHistory, n)
		return h, err
	})
}

// decodePriceHistory reads a response.
func decodePriceHistory(payload wire.Value, tokenID string, from, to market.Date, n *drift) (*market.PriceHistory, error) {
	list, ok := rowsOf(payload, "history", "prices", "points")
	if !ok {
		return nil, unknownForm(reqctx.EndpointPriceHistory, "no list of points")
	}
	if id, ok := wire.FieldTokenID.Of(list.object).ID(); ok && id != "" && id != tokenID {
		return nil, unknownForm(reqctx.EndpointPriceHistory, "the history of another token")
	}
	points, bad := readRows(list.rows, n, readPoint)
	kept := points[:0]
	for _, p := range points {
		if day := market.DateOf(p.Timestamp); day >= from && day <= to {
			kept = append(kept, p)
			continue
		}
		n.add("point on another day")
	}
	if len(kept) == 0 && len(list.rows) > 0 {
		return nil, unknownForm(reqctx.EndpointPriceHistory, bad.whyEmpty())
	}
	// The sort is stable, so points with the same time stay in the order of the response.
	slices.SortStableFunc(kept, func(a, b market.PricePoint) int { return a.Timestamp.Compare(b.Timestamp) })
	last := kept[:0]
	for _, p := range kept {
		if i := len(last) - 1; i >= 0 && last[i].Timestamp.Equal(p.Timestamp) {
			last[i] = p
			continue
		}
		last = append(last, p)
	}
	return &market.PriceHistory{TokenID: wire.Intern(tokenID), From: from, To: to, Points: last, LeftOut: bad.leftOut(reqctx.EndpointPriceHistory)}, nil
}

func readPoint(r *wire.Row) market.PricePoint {
	return market.PricePoint{Timestamp: r.RequireTime(fieldTimestamp), Price: r.Price(wire.FieldPrice), Volume: r.Decimal(fieldVolumeOfPoint)}
}
