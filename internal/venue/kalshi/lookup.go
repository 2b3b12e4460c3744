package kalshi

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// values are the results of a call by ticker. A ticker that the venue does not know has no entry.
type values[T any] map[string]market.Result[*T]

// lookup reads values by ticker. One call reads several values.
type lookup[T any] struct {
	client   *rest.Client
	endpoint reqctx.Endpoint
	// batch is the greatest number of tickers in one call.
	batch int
	// call reads the values of tickers.
	call func(ctx context.Context, tickers []string, note func(string)) (values[T], error)
}

// read returns the values of tickers. The list may contain a ticker several times. If every call failed, read also returns an
// error. If only some calls failed, read returns their errors only in the results.
func (l lookup[T]) read(ctx context.Context, tickers []string) (values[T], error) {
	results := make(values[T], len(tickers))
	var keys []string
	seen, refused := make(map[string]bool, len(tickers)), false
	for _, ticker := range tickers {
		if seen[ticker] {
			continue
		}
		seen[ticker] = true
		if err := l.client.Refusal(l.endpoint, ticker); err != nil {
			results[ticker], refused = market.Result[*T]{Err: err}, true
			continue
		}
		keys = append(keys, ticker)
	}
	lists := slices.Collect(slices.Chunk(keys, l.batch))
	found, errs := make([]values[T], len(lists)), make([]error, len(lists))
	rest.ForEach(len(lists), func(i int) {
		var n rest.Drift
		found[i], errs[i] = l.call(ctx, lists[i], n.Add)
		l.client.Report(l.endpoint, n)
	})
	for i, list := range lists {
		errs[i] = l.record(list, found[i], errs[i], results)
	}
	if refused || len(lists) == 0 {
		return results, nil
	}
	return results, rest.ErrorIfAllFailed(errs)
}

// record writes the results of one call and starts or ends the backoff of its tickers.
func (l lookup[T]) record(list []string, found values[T], failed error, results values[T]) error {
	if failed != nil {
		failed = l.client.Record(l.endpoint, rest.BadIfNotFound(l.endpoint, failed), list...)
		for _, ticker := range list {
			results[ticker] = market.Result[*T]{Err: failed}
		}
		return failed
	}
	var fine []string
	for _, ticker := range list {
		r := found[ticker]
		if r.Err != nil {
			r.Err = l.client.Record(l.endpoint, r.Err, ticker)
		} else {
			fine = append(fine, ticker)
		}
		results[ticker] = r
	}
	_ = l.client.Record(l.endpoint, nil, fine...)
	return nil
}

// token is a parsed id of a token. ok is false for a text that cannot be the id of a token.
type token struct {
	ticker string
	side   side
	ok     bool
}

// readTokens reads the values of the tokens' markets, each market once. It returns a result for each token. The function value
// computes the value of a token from the value of its market, and may return nil.
func readTokens[T, V any](ctx context.Context, l lookup[T], ids []string, value func(i int, t token, of *T) *V) ([]market.Result[*V], error) {
	tokens, tickers := make([]token, len(ids)), make([]string, 0, len(ids))
	out := make([]market.Result[*V], len(ids))
	for i, id := range ids {
		t := &tokens[i]
		if err := rest.CheckID(l.endpoint, id); err != nil {
			out[i].Err = err
		} else if t.ticker, t.side, t.ok = parseToken(id); t.ok {
			tickers = append(tickers, t.ticker)
		}
	}
	found, err := l.read(ctx, tickers)
	for i, t := range tokens {
		if !t.ok {
			continue
		}
		switch r := found[t.ticker]; {
		case r.Err != nil:
			out[i].Err = r.Err
		case r.Value != nil:
			out[i].Value = value(i, t, r.Value)
		}
	}
	if len(tickers) < len(ids) {
		err = nil // an error means that every id has failed in a call, but some ids needed no call
	}
	return out, err
}
