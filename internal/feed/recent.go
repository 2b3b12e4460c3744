package feed

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
)

// maxRecent is how many recent prices are kept of a token, of at most one a second: those of the last two minutes where it
// moves all the time, else of a longer time.
const maxRecent = 120

// Point is a price of a token. At is when it was heard of.
type Point struct {
	At    time.Time
	Price market.Decimal
}

// recent is a ring of a token's latest prices, the last one of each second.
type recent struct {
	points []Point
	newest int // index
}

func (r *recent) add(at time.Time, price market.Decimal) {
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
func (r *recent) list() []Point {
	if len(r.points) == 0 {
		return nil
	}
	return slices.Concat(r.points[r.newest+1:], r.points[:r.newest+1])
}

// Recent returns the latest prices of a token whose price is watched, oldest first, one a second at most and at most
// maxRecent; nil where the feed knows none. The slice is the caller's.
func (f *Feed) Recent(tokenID string) []Point {
	t := f.find(market.Topic{Channel: market.ChannelPrices, ID: tokenID})
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent.list()
}
