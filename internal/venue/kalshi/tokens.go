package kalshi

import (
	"context"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// side is an outcome of a market.
type side uint8

const yes, no side = 0, 1

// sides contains both outcomes in the order in which a market lists them. suffixes are the last parts of token ids.
var (
	sides    = [...]side{yes, no}
	suffixes = [...]string{yes: ":yes", no: ":no"}
	labels   = [...]string{yes: "Yes", no: "No"}
)

func (s side) other() side { return 1 - s }

func (s side) token(ticker string) string { return ticker + suffixes[s] }

// price converts a price of YES into the price of the outcome, with the same number of decimals.
func (s side) price(ofYes market.Decimal) market.Decimal {
	if s == yes {
		return ofYes
	}
	return one.Sub(ofYes)
}

func inverse(p *market.Decimal) *market.Decimal {
	if p == nil {
		return nil
	}
	return new(one.Sub(*p))
}

var one = market.NewDecimal(1, 0)

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
// underscores. The venue cannot know any other id, so the driver makes no call for it. In a path, two points would lead elsewhere.
func isTicker(s string) bool {
	return strings.Trim(s, ".") != "" && len(s) <= maxTicker && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}

func slug(ticker string) string { return strings.ToLower(ticker) }

// readTokens reads the data of the tokens' markets, each market once. It returns a result for each token. It calls convert with the
// data of a token's market to get the value of the token, which may be nil. For the error, see rest.Lookup.Read.
func readTokens[T, V any](ctx context.Context, call upstream.Call, l rest.Lookup[T], ids []string, convert func(of *T, ticker string, s side) *V) ([]upstream.Result[*V], error) {
	tickers := make([]string, len(ids))
	for i, id := range ids {
		ticker, _, ok := parseToken(id)
		switch {
		case ok:
			tickers[i] = ticker
		case isTicker(id):
			tickers[i] = ":" // id is not the id of a token, so Read must not send it
		default:
			tickers[i] = id
		}
	}
	found, err := l.Read(ctx, call, tickers)
	out := make([]upstream.Result[*V], len(ids))
	for i, r := range found {
		if out[i].Err = r.Err; r.Value != nil {
			_, s, _ := parseToken(ids[i])
			out[i].Value = convert(r.Value, tickers[i], s)
		}
	}
	return out, err
}
