package kalshi

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// token is a parsed id of a token. ok is false for a text that cannot be the id of a token.
type token struct {
	ticker string
	side   side
	ok     bool
}

// readTokens reads the data of the tokens' markets, each market once. It returns a result for each token. It calls convert with the
// data of a token's market to get the value of the token, which may be nil. If every id is the id of a token and every call failed,
// readTokens also returns an error.
func readTokens[T, V any](ctx context.Context, call upstream.Call, l rest.Lookup[T], ids []string, convert func(i int, t token, of *T) *V) ([]market.Result[*V], error) {
	tokens, tickers := make([]token, len(ids)), make([]string, 0, len(ids))
	out := make([]market.Result[*V], len(ids))
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
