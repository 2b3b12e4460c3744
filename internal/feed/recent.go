package feed

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// maxRecent is the maximum number of recent prices of a token. The list has at most one price for each second.
const maxRecent = 120

// Point is a price of a token and the local time when the price arrived.
type Point struct {
	At    time.Time
	Price market.Decimal
}

// addPoint adds a price to points, which are sorted with the oldest first. If the last point has arrived in the same second as the
// new point or in a later second, the new point replaces the last point.
func addPoint(points []Point, at time.Time, price market.Decimal) []Point {
	if n := len(points); n > 0 && at.Unix() <= points[n-1].At.Unix() {
		points = points[:n-1]
	} else if n == maxRecent {
		points = slices.Delete(points, 0, 1)
	}
	return append(points, Point{at, price})
}

// Recent returns the latest prices of a token, oldest first. It returns at most one price for each second and at most maxRecent
// prices. It returns nil if the price of the token is not watched or has not arrived yet. The calling function owns the slice.
func (f *Feed) Recent(tokenID string) []Point {
	t := f.find(messages.Topic{Channel: messages.ChannelPrices, ID: tokenID})
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.recent)
}
