package generic

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// read is a read of one endpoint. The function text makes the read. It returns the values as text, the errors of the rows that the
// client left out, and the error of the read. The text of a value that the venue does not have is "absent".
type read struct {
	name string
	user bool
	text func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error)
}

// call makes the read. If the venue does not have the requested value, absent is true and err is nil.
func (r read) call(ctx context.Context, call upstream.Call, c *Client) (absent bool, err error) {
	text, _, err := r.text(ctx, call, c)
	return err == nil && text == "absent", err
}

func (r read) path() string {
	return paths[slices.IndexFunc(paths[:], func(path string) bool { return strings.HasSuffix(path, "/"+r.name) })]
}

// readsFor returns a read of every endpoint. If the result of a read has only one element, the error of the element is the error of
// the read.
func readsFor(tokens []string, marketID, slug string, from, to market.Date) []read {
	return []read{
		{"prices", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return elementsText(showPrice)(c.Prices(ctx, call, tokens))
		}},
		{"spreads", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return elementsText(showSpread)(c.Spreads(ctx, call, tokens))
		}},
		{"orderbook", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showBook)(c.Book(ctx, call, tokens[0], 20))
		}},
		{"price-history", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showHistory)(c.PriceHistory(ctx, call, tokens[0], from, to))
		}},
		{"market-search", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showSearch)(c.Search(ctx, call, queries.Search{Limit: 6}))
		}},
		{"market-details", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return elementsText(showMarket)(c.MarketsByID(ctx, call, []string{marketID}))
		}},
		{"market-details", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return elementsText(showMarket)(c.MarketsByToken(ctx, call, tokens[:1]))
		}},
		{"market-details", false, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showMarket)(c.MarketBySlug(ctx, call, slug))
		}},
		{"balance", true, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showBalance)(c.Balance(ctx, call, wallet))
		}},
		{"positions", true, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			list, err := c.Positions(ctx, call, wallet)
			return lines(list, showPosition), nil, err
		}},
		{"orders", true, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			list, err := c.Orders(ctx, call, wallet)
			return lines(list, showOrder), nil, err
		}},
		{"trades", true, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showTrades)(c.Trades(ctx, call, wallet, queries.Trades{}))
		}},
		{"history", true, func(ctx context.Context, call upstream.Call, c *Client) (string, market.LeftOut, error) {
			return valueText(showRecords)(c.History(ctx, call, wallet, queries.History{}))
		}},
	}
}

// readOf returns the first read of an endpoint.
func readOf(reads []read, endpoint string) read {
	return reads[slices.IndexFunc(reads, func(r read) bool { return r.name == endpoint })]
}

var reads = readsFor([]string{"101"}, "M1", "will-it-rain", 20000, 20001)

func elementsText[T any](show func(*T) string) func([]upstream.Result[*T], error) (string, market.LeftOut, error) {
	return func(results []upstream.Result[*T], err error) (string, market.LeftOut, error) {
		if err == nil && len(results) == 1 {
			err = results[0].Err
		}
		return showResults(results, show), nil, err
	}
}

func valueText[T any](show func(*T) string) func(*T, error) (string, market.LeftOut, error) {
	return func(v *T, err error) (string, market.LeftOut, error) {
		if err != nil {
			return "", nil, err
		}
		if v == nil {
			return "absent", nil, nil
		}
		switch page := any(v).(type) {
		case *market.PriceHistory:
			return show(v), page.LeftOut, nil
		case *queries.SearchPage:
			return show(v), page.LeftOut, nil
		case *queries.TradePage:
			return show(v), page.LeftOut, nil
		case *queries.HistoryPage:
			return show(v), page.LeftOut, nil
		}
		return show(v), nil, nil
	}
}

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Config: rest.Config{BaseURL: "localhost:8080"}}, {Config: rest.Config{BaseURL: "ftp://host"}}, {Config: rest.Config{BaseURL: "http://"}},
		{Config: rest.Config{BaseURL: "http://:80"}}, {Config: rest.Config{BaseURL: "http://a b/"}}, {Config: rest.Config{BaseURL: "http://user:word@host"}},
		{Config: rest.Config{BaseURL: "http://host/?x=1"}}, {Config: rest.Config{BaseURL: "http://host/#x"}},
		{Config: rest.Config{BaseURL: "http://host", CredentialsMode: "cookie"}}, {Config: rest.Config{BaseURL: "http://host", Timeout: -1}},
		{Config: rest.Config{BaseURL: "http://host", MaxBody: -1}}, {Config: rest.Config{BaseURL: "http://host"}, MaxIDs: -1},
	} {
		c, err := New(cfg)
		if err == nil || c != nil {
			t.Errorf("New(%+v) = %v, %v; want an error", cfg, c, err)
		} else if strings.Contains(err.Error(), "word") {
			t.Errorf("the error quotes the URL: %v", err)
		}
	}
}

func TestObserverSeesEveryCall(t *testing.T) {
	seen := &recordingObserver{}
	status := 200
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		answerWith(status, "application/json", goldenFile(t, "prices/list"))(w, r)
	}))
	c := v.client(t, func(cfg *Config) { cfg.Observer = seen })
	_, _ = c.Prices(t.Context(), upstream.Call{}, []string{"101", "103"})
	status = 429
	_, _ = c.Prices(t.Context(), upstream.Call{}, []string{"101"})
	v.Close()
	_, _ = c.Prices(t.Context(), upstream.Call{}, []string{"102"})
	assertEqual(t, strings.Join(seen.calls, "; "), "prices 2 200 ok; prices 1 429 RATE_LIMITED; prices 1 0 UPSTREAM_UNAVAILABLE")
}

var badIDs = []string{"", "a,b", "a/b", "a\nb", "a\x00", "\x7f", "\u0085", "\xff", strings.Repeat("x", market.MaxIDLength+1)}

func TestBadInputIsNotSent(t *testing.T) {
	v := newVenue(t, nil) // newVenue fails the test on every HTTP call
	c := v.client(t)
	wantBadInput := func(what string, err error) {
		t.Helper()
		if market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("for the bad argument %q, got %v, want %s", what, err, market.CodeBadUserInput)
		}
	}
	ctx, user := t.Context(), asUser(t)
	for _, id := range badIDs {
		_, err := c.Book(ctx, user, id, 1)
		wantBadInput("book", err)
		_, err = c.PriceHistory(ctx, user, id, 1, 2)
		wantBadInput("history", err)
		_, err = c.MarketBySlug(ctx, user, id)
		wantBadInput("slug", err)
		if id != "" {
			_, err = c.Search(ctx, user, queries.Search{EventID: id})
			wantBadInput("event", err)
			_, err = c.Search(ctx, user, queries.Search{EventSlug: id})
			wantBadInput("event slug", err)
			_, err = c.Trades(ctx, user, wallet, queries.Trades{MarketID: id})
			wantBadInput("market of trades", err)
		}
		for name, list := range map[string]func() error{
			"prices":  func() error { r, err := c.Prices(ctx, user, []string{id}); return elementError(r[0].Err, err) },
			"spreads": func() error { r, err := c.Spreads(ctx, user, []string{id}); return elementError(r[0].Err, err) },
			"markets": func() error { r, err := c.MarketsByID(ctx, user, []string{id}); return elementError(r[0].Err, err) },
			"tokens":  func() error { r, err := c.MarketsByToken(ctx, user, []string{id}); return elementError(r[0].Err, err) },
		} {
			wantBadInput(name, list())
		}
	}
	for _, page := range []string{"x", "{", "null", "1", `{"c":1}`, `{"o":-1}`, `{"o":1.5}`, `{"o":1000001}`, `{"o":5,"p":"` + strings.Repeat("a", 4<<10) + `"}`, `{"d":1}`, `{"o":1} `, `{"n":"!"}`, `{"n":""}`} {
		_, err := c.Search(ctx, user, queries.Search{Page: page})
		wantBadInput("page "+page, err)
		_, err = c.History(ctx, user, wallet, queries.History{Page: page})
		wantBadInput("page "+page, err)
	}
	_, err := c.Book(ctx, user, "101", 0)
	wantBadInput("depth", err)
	_, err = c.PriceHistory(ctx, user, "101", 3, 2)
	wantBadInput("days", err)
	for _, q := range []queries.Search{{Limit: 101}, {Limit: -1}, {Text: strings.Repeat("x", maxText+1)}, {Tag: strings.Repeat("x", market.MaxIDLength+1)}} {
		_, err = c.Search(ctx, user, q)
		wantBadInput("search", err)
	}
	_, err = c.Trades(ctx, user, wallet, queries.Trades{Limit: 101})
	wantBadInput("limit", err)
	if v.count() != 0 {
		t.Errorf("the client made %d calls, want none", v.count())
	}
}

// elementError returns the error of an element. If the whole read failed, elementError returns an error without a code.
func elementError(element, whole error) error {
	if whole != nil {
		return fmt.Errorf("the read failed as a whole: %s", whole)
	}
	return element
}

func TestBadIDFailsOnlyItself(t *testing.T) {
	v := newVenue(t, everywhere(answer(goldenFile(t, "prices/list"))))
	results, err := v.client(t).Prices(t.Context(), upstream.Call{}, []string{"103", "a,b", "101", "103", "", "102"})
	must(t, err)
	assertEqual(t, showResults(results, func(p *market.Price) string { return p.TokenID + " " + p.Price.String() }),
		"103 0.02\nBAD_USER_INPUT\n101 0.65\n103 0.02\nBAD_USER_INPUT\nabsent")
	assertEqual(t, strings.Join(v.queries(), "; "), "tokenIds=103,101,102")
}
