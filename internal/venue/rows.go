package venue

import (
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// rowErrors are the unreadable rows of a list.
type rowErrors []rowError

type rowError struct {
	// where identifies the row by its number, counted from 1.
	where string
	err   error
}

// maxLeftOut is the greatest number of bad rows with an error each. Further bad rows share one error.
const maxLeftOut = 10

// readRows reads the rows of a list and returns the good rows and the errors of the bad ones.
func readRows[T any](list []wire.Value, n *drift, read func(*wire.Row) T) (good []T, bad rowErrors) {
	good, note := make([]T, 0, len(list)), n.add
	for i, v := range list {
		r := wire.NewRow(v, note)
		var value T
		if r.Err == nil {
			value = read(r)
		}
		if r.Err != nil {
			n.add("bad row")
			bad = append(bad, rowError{"row " + strconv.Itoa(i+1), r.Err})
			continue
		}
		good = append(good, value)
	}
	return good, bad
}

// leftOut returns the errors that clients of the graph see.
func (b rowErrors) leftOut(e reqctx.Endpoint) market.LeftOut {
	var out market.LeftOut
	for i, bad := range b {
		if i == maxLeftOut {
			return append(out, market.Errorf(market.CodeUpstreamBadResponse, "%d more rows of the venue's answer could not be read and are left out (%s)", len(b)-i, e))
		}
		out = append(out, market.Errorf(market.CodeUpstreamBadResponse, "%s of the venue's answer could not be read and is left out (%s)", bad.where, e).Because(bad.err))
	}
	return out
}

// whyEmpty returns the reason why a list with rows has no usable row.
func (b rowErrors) whyEmpty() string {
	if len(b) > 0 {
		return "every row is bad: " + b[0].err.Error()
	}
	return "every row is of something else than was asked for"
}
