package kalshi

import (
	"strings"

	"oddsgraph/internal/market"
)

// side is an outcome of a market.
type side uint8

const (
	yes side = iota
	no
)

// sides contains both outcomes in the order in which a market lists them.
var sides = [...]side{yes, no}

// suffixes are the last parts of token ids. labels are the labels of the outcomes.
var (
	suffixes = [...]string{yes: ":yes", no: ":no"}
	labels   = [...]string{yes: "Yes", no: "No"}
)

func (s side) other() side { return 1 - s }

func (s side) token(ticker string) string { return ticker + suffixes[s] }

// price converts a price of YES into the price of the outcome. The price of NO is 1 minus the price of YES, with the same number of
// decimals.
func (s side) price(ofYes market.Decimal) market.Decimal {
	if s == yes {
		return ofYes
	}
	return one.Sub(ofYes)
}

// optionalPrice is like price. If ofYes is nil, optionalPrice returns nil.
func (s side) optionalPrice(ofYes *market.Decimal) *market.Decimal {
	if ofYes == nil || s == yes {
		return ofYes
	}
	return new(s.price(*ofYes))
}

var one = market.NewDecimal(1, 0)

// parseToken returns the market and the outcome of a token's id. ok is false for a text that cannot be the id of a token.
func parseToken(id string) (ticker string, s side, ok bool) {
	for _, s := range sides {
		if ticker, ok := strings.CutSuffix(id, suffixes[s]); ok && isTicker(ticker) {
			return ticker, s, true
		}
	}
	return "", yes, false
}

const maxTicker = 200

// isTicker reports whether s may be the ticker of a market, event or series: letters in upper case, digits, points, hyphens and
// underscores. The venue cannot know any other id, so the driver makes no call for it.
func isTicker(s string) bool {
	return s != "" && len(s) <= maxTicker && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}

func slug(ticker string) string { return strings.ToLower(ticker) }
