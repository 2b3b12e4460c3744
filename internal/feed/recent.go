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

// addPoint adds a price to points, which are oldest first. It replaces the last point if both are of the same second.
func addPoint(points []Point, at time.Time, price market.Decimal) []Point {
	if n := len(points); n > 0 && at.Unix() <= points[n-1].At.Unix() {
		points = points[:n-1]
	} else if n == maxRecent {
		points = slices.Delete(points, 0, 1)
	}
	return append(points, Point{at, price})
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
	return slices.Clone(t.recent)
}
