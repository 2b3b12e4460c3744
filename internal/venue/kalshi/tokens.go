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

// price converts a price of YES into the price of the outcome, with the same number of decimals.
func (s side) price(ofYes market.Decimal) market.Decimal {
	if s == yes {
		return ofYes
	}
	return one.Sub(ofYes)
}

func (s side) optionalPrice(ofYes *market.Decimal) *market.Decimal {
	if ofYes == nil || s == yes {
		return ofYes
	}
	return new(s.price(*ofYes))
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
// underscores. The venue cannot know any other id, so the driver makes no call for it.
func isTicker(s string) bool {
	return s != "" && len(s) <= maxTicker && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}

func slug(ticker string) string { return strings.ToLower(ticker) }

// token is a parsed id of a token. ok is false for a text that cannot be the id of a token.
type token struct {
	ticker string
	side   side
	ok     bool
}

// readTokens reads the data of the tokens' markets, each market once. It returns a result for each token. It calls convert with the
// data of a token's market to get the value of the token, which may be nil. If every id is the id of a token and every call failed,
// readTokens also returns an error.
func readTokens[T, V any](ctx context.Context, call upstream.Call, l rest.Lookup[T], ids []string, convert func(i int, t token, of *T) *V) ([]upstream.Result[*V], error) {
	tokens, tickers := make([]token, len(ids)), make([]string, 0, len(ids))
	out := make([]upstream.Result[*V], len(ids))
	for i, id := range ids {
		t := &tokens[i]
		if t.ticker, t.side, t.ok = parseToken(id); t.ok {
			tickers = append(tickers, t.ticker)
		} else {
			out[i].Err = rest.CheckID(l.Endpoint, id)
		}
	}
	found, err := l.Read(ctx, call, tickers)
	for i, t := range tokens {
		if !t.ok {
			continue
		}
		r := found[0]
		if found, out[i].Err = found[1:], r.Err; r.Value != nil {
			out[i].Value = convert(i, t, r.Value)
		}
	}
	if len(tickers) < len(ids) {
		err = nil // Read returns an error if every ticker has failed, but some ids were not read
	}
	return out, err
}
