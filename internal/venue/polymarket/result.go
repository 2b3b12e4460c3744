package polymarket

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldOracleStatus     = wire.NewField("umaResolutionStatus").Interned()
	fieldResolutionStatus = wire.NewField("resolutionStatus").Interned()
	fieldResolutionSource = wire.NewField("resolutionSource", "resolvedBy").Interned()
	fieldClosedTime       = wire.NewField("closedTime")

	fieldWinner  = wire.NewField("winner")
	fieldIsEqual = wire.NewField("is_50_50_outcome")
)

var (
	one  = market.NewDecimal(1, 0)
	half = market.NewDecimal(5, -1)
)

// readResult reads the status and the result of a Gamma market. Only a market that is closed and resolved has a result. The price
// of the winner is then exactly 1, and all other prices are 0. If nobody won, both prices are 0.5. Prices alone are not enough,
// because a closed market may have the prices 1 and 0 before it is resolved. If the market is closed and Gamma does not state the
// winner, undecided has the source and the time of the result. Otherwise undecided is nil.
func readResult(r *wire.Row, m *market.Market) (undecided *market.Resolution) {
	closed, active, status := isTrue(r.Bool(wire.FieldClosed)), isTrue(r.Bool(wire.FieldActive)), resolutionStatus(r)
	m.StatusRaw = status
	resolved := strings.EqualFold(status, "resolved") || strings.EqualFold(status, "settled")
	known := &market.Resolution{}
	if closed {
		known.Source, known.ResolvedAt = resolutionSource(r), r.Time(fieldClosedTime)
	}
	switch {
	case closed && resolved && setWinner(m, pricedWinner(m.Outcomes), known):
	case closed && resolved && equalPrices(m.Outcomes):
		m.Status, m.Resolution = market.StatusCancelled, known
	case strings.EqualFold(status, "disputed"), strings.EqualFold(status, "challenged"):
		if m.Status = market.StatusDisputed; closed {
			undecided = known
		}
	case closed:
		m.Status, undecided = market.StatusClosed, known
	case active:
		m.Status = market.StatusOpen
	default:
		m.Status = market.StatusUnknown
	}
	return undecided
}

// resolutionStatus returns the progress of a market's resolution. Markets of protocol V2 have a field of their own, without the state
// of UMA's oracle.
func resolutionStatus(r *wire.Row) string {
	if r.Text(fieldVersion) == versionV2 {
		return cmp.Or(r.Text(fieldResolutionStatus), r.Text(fieldOracleStatus))
	}
	return r.Text(fieldOracleStatus)
}

func isTrue(b *bool) bool { return b != nil && *b }

// resolutionSource returns the source that decides the market, or else the address of the contract that resolves it.
func resolutionSource(r *wire.Row) string {
	for _, name := range fieldResolutionSource.Names() {
		if v := r.Object.Member(name); v.Kind() == wire.String && !v.Is("") {
			return v.Interned()
		}
	}
	return ""
}

func pricedWinner(outcomes []market.Outcome) int {
	winner := -1
	for i := range outcomes {
		switch p := outcomes[i].Price; {
		case p == nil:
			return -1
		case p.Cmp(one) == 0 && winner < 0:
			winner = i
		case !p.IsZero():
			return -1
		}
	}
	return winner
}

func equalPrices(outcomes []market.Outcome) bool {
	other := func(o market.Outcome) bool { return o.Price == nil || o.Price.Cmp(half) != 0 }
	return len(outcomes) == 2 && !slices.ContainsFunc(outcomes, other)
}

// setWinner makes a market RESOLVED with the outcome at index i as its winner. known has the other parts of the result. If i is
// negative, setWinner returns false.
func setWinner(m *market.Market, i int, known *market.Resolution) bool {
	if i < 0 {
		return false
	}
	for j := range m.Outcomes {
		m.Outcomes[j].Winner = new(j == i)
	}
	m.Status, m.Resolution = market.StatusResolved, known
	m.Resolution.Outcome = m.Outcomes[i].Label
	return true
}

// result is the result of a market in the CLOB API.
type result struct {
	// winner is the id of the winning token, and label is the label of its outcome. Both are empty if no token has won.
	winner, label string
	// equal reports that a share of either outcome pays 0.5.
	equal bool
}

// readClobResult reads the result of a market of the CLOB API. If the market is not closed, the result is zero.
func readClobResult(v wire.Value, marketID string, note func(string)) (result, error) {
	r := wire.NewRow(v, note)
	if id := r.ID(fieldConditionID); r.Err == nil && !strings.EqualFold(conditionID(id), marketID) {
		return result{}, errors.New("the response is about another market")
	}
	list, ok := r.Of(wire.FieldTokens).List()
	if !ok {
		r.Fail(wire.FieldTokens, "are missing")
	}
	if r.Err != nil || !isTrue(r.Bool(wire.FieldClosed)) {
		return result{}, r.Err
	}
	var out result
	for _, v := range list {
		token := r.Child(v)
		if isTrue(token.Bool(fieldWinner)) {
			if out.winner != "" {
				return result{}, errors.New("the market has two winners")
			}
			out.winner, out.label = token.RequireID(wire.FieldTokenID), token.Text(wire.FieldOutcome)
		}
		if token.Err != nil {
			return result{}, token.Err
		}
	}
	out.equal = out.winner == "" && isTrue(r.Bool(fieldIsEqual))
	return out, nil
}

// apply adds the result to a closed market whose winner Gamma does not state. known has the parts of the result that Gamma states. If
// the result is zero, the status does not change.
func (o result) apply(m *market.Market, known *market.Resolution) {
	if o.equal {
		m.Status, m.Resolution = market.StatusCancelled, known
	}
	if o.equal || setWinner(m, o.winnerOf(m), known) {
		known.Source = cmp.Or(known.Source, "CLOB")
	}
	m.Summary = false
}

// winnerOf returns the index of the winner, or -1. If Gamma states no tokens, the label identifies the outcome.
func (o result) winnerOf(m *market.Market) int {
	if o.winner == "" {
		return -1
	}
	return slices.IndexFunc(m.Outcomes, func(own market.Outcome) bool {
		return own.TokenID == o.winner || !isTraded(m) && own.Label == o.label
	})
}
