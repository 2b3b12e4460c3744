package feed

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
)

// maxRecent is the number of recent prices of a token, with at most one a second: at least the last two minutes.
const maxRecent = 120

// Point is a price of a token. At is when it arrived.
type Point struct {
	At    time.Time
	Price market.Decimal
}

// pointRing is a ring of a token's latest prices, with the last one of each second.
type pointRing struct {
	points []Point
	newest int // an index
}

func (r *pointRing) add(at time.Time, price market.Decimal) {
	p := Point{at, price}
	switch {
	case len(r.points) > 0 && at.Unix() <= r.points[r.newest].At.Unix():
		r.points[r.newest] = p
	case len(r.points) < maxRecent:
		r.newest = len(r.points)
		r.points = append(r.points, p)
	default:
		r.newest = (r.newest + 1) % maxRecent
		r.points[r.newest] = p
	}
}

// list returns a copy of the points, oldest first.
func (r *pointRing) list() []Point {
	if len(r.points) == 0 {
		return nil
	}
	return slices.Concat(r.points[r.newest+1:], r.points[:r.newest+1])
}

// Recent returns the latest prices of a token whose price is watched, oldest first: at most one a second, and at most
// maxRecent. It returns nil if the feed has none. The caller owns the slice.
func (f *Feed) Recent(tokenID string) []Point {
	t := f.find(market.Topic{Channel: market.ChannelPrices, ID: tokenID})
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent.list()
}
