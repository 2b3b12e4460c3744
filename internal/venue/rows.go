package venue

import (
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// badRows are the rows of a list that could not be read.
type badRows []badRow

type badRow struct {
	// at says which row it is, counted from 1.
	at  string
	err error
}

// maxLeftOut bounds how many bad rows of a list are named.
const maxLeftOut = 10

// readRows reads a list whose bad rows cost only themselves; they are returned beside the good ones.
func readRows[T any](list []wire.Value, n *notes, read func(*wire.Row) T) (good []T, bad badRows) {
	good, note := make([]T, 0, len(list)), n.add
	for i, v := range list {
		r := wire.NewRow(v, note)
		var value T
		if r.Err == nil {
			value = read(r)
		}
		if r.Err != nil {
			n.add("bad row")
			bad = append(bad, badRow{"row " + strconv.Itoa(i+1), r.Err})
			continue
		}
		good = append(good, value)
	}
	return good, bad
}

// leftOut returns the errors that tell which rows are missing from a list.
func (b badRows) leftOut(e reqctx.Endpoint) market.LeftOut {
	var out market.LeftOut
	for i, bad := range b {
		if i == maxLeftOut {
			return append(out, market.Errorf(market.CodeUpstreamBadResponse, "%d more rows of the venue's answer could not be read and are left out (%s)", len(b)-i, e))
		}
		out = append(out, market.Errorf(market.CodeUpstreamBadResponse, "%s of the venue's answer could not be read and is left out (%s)", bad.at, e).Because(bad.err))
	}
	return out
}

// whyEmpty says why nothing is left of a list that had rows.
func (b badRows) whyEmpty() string {
	if len(b) > 0 {
		return "every row is bad: " + b[0].err.Error()
	}
	return "every row is of something else than was asked for"
}
