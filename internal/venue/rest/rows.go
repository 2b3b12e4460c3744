package rest

import (
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

// RowErrors are the errors of the unreadable rows of a list.
type RowErrors []RowError

// RowError is the error of one unreadable row.
type RowError struct {
	// Where identifies the row by its number. The first row has the number 1.
	Where string
	Err   error
}

// MaxLeftOut is the greatest number of bad rows that get separate errors. All further bad rows share one error.
const MaxLeftOut = 10

// NextCursor returns the venue's cursor of the next page, or "" after the last page. The argument current is the cursor of this page.
// On the last page, a venue may send it again.
func NextCursor(next, current string) string {
	if next == current {
		return ""
	}
	return next
}

// ReadRows calls read for the rows of a list, and passes the drift to note. It returns the values of the good rows, and the
// errors of the bad rows.
func ReadRows[T any](list []wire.Value, note func(string), read func(*wire.Row) T) (good []T, bad RowErrors) {
	good = make([]T, 0, len(list))
	for i, v := range list {
		r := wire.NewRow(v, note)
		var value T
		if r.Err == nil {
			value = read(r)
		}
		if r.Err != nil {
			note("bad row")
			bad = append(bad, RowError{"row " + strconv.Itoa(i+1), r.Err})
			continue
		}
		good = append(good, value)
	}
	return good, bad
}

// LeftOut returns the errors that GraphQL clients see.
func (b RowErrors) LeftOut(e upstream.Endpoint) market.LeftOut {
	var out market.LeftOut
	for i, bad := range b {
		if i == MaxLeftOut {
			return append(out, market.Errorf(market.CodeUpstreamBadResponse, "%d more rows of the venue's answer could not be read and are left out (%s)", len(b)-i, e))
		}
		out = append(out, market.Errorf(market.CodeUpstreamBadResponse, "%s of the venue's answer could not be read and is left out (%s)", bad.Where, e).Because(bad.Err))
	}
	return out
}

// WhyEmpty returns the reason why a list with rows has no usable row.
func (b RowErrors) WhyEmpty() string {
	if len(b) > 0 {
		return "every row is bad: " + b[0].Err.Error()
	}
	return "every row belongs to another id or account than the request"
}

// SpreadOf returns the best prices of a book.
func SpreadOf(b *market.Book) *market.Spread {
	return &market.Spread{
		TokenID: b.TokenID, BestBid: b.BestBid(), BestAsk: b.BestAsk(), Spread: b.Spread, Timestamp: b.Timestamp, FromBook: true,
	}
}
