package kalshi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestOneCallFillsBothTokens checks that one call returns the books of both tokens of a market, with and without a key. If one of the calls fails, only
// the books of its market have an error. The book of a market without orders is empty.
func TestOneCallFillsBothTokens(t *testing.T) {
	for sign, newDriver := range map[string]func(*testing.T, map[string]func(url.Values) (int, string)) (*Driver, *stub){"": newDriver, " signed": newSigningDriver} {
		d, s := newDriver(t, map[string]func(url.Values) (int, string){
			"/markets/A-1/orderbook": text(`{"orderbook_fp":{"yes_dollars":[["0.4000","3.00"]],"no_dollars":[["0.5500","4.00"]]}}`),
			"/markets/B-1/orderbook": text(`{"orderbook_fp":{"yes_dollars":[["0.2000","3.00"]],"no_dollars":null}}`),
			"/markets/C-1/orderbook": status(http.StatusInternalServerError), "/markets/E-1/orderbook": text(`{"orderbook":{}}`),
			"/markets/F-1/orderbook": text(`{"orderbook_fp":{"yes_dollars":[],"no_dollars":null}}`),
		})
		got, err := d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes", "B-1:no", "A-1:no", "C-1:yes", "D-1:yes", "E-1:yes", "F-1:yes"))
		want := []string{"A-1:yes 0.4×3 | 0.45×4 | ", "B-1:no | 0.8×3 | ", "A-1:no 0.55×4 | 0.6×3 | ", "UPSTREAM_UNAVAILABLE", "none", "UPSTREAM_BAD_RESPONSE", "F-1:yes | | "}
		if books := describeBooks(got); err != nil || !slices.Equal(books, want) {
			t.Errorf("the books are %q and the error is %v; want %q", books, err, want)
		}
		var calls []string
		for _, ticker := range []string{"A-1", "B-1", "C-1", "D-1", "E-1", "F-1"} {
			calls = append(calls, "/markets/"+ticker+"/orderbook"+sign)
		}
		slices.Sort(s.calls) // the calls are concurrent
		s.want(t, calls...)
	}
}

// TestRowWithoutTicker checks lists with a row whose ticker is missing. The row may belong to any of the requested markets, so a
// market without a row has an error and is not unknown. The driver must not ask the archive for this market.
func TestRowWithoutTicker(t *testing.T) {
	quote := `"status":"active","yes_bid_dollars":"0.4000","yes_ask_dollars":"0.5000"`
	candles := `"candlesticks":[{"end_period_ts":1795687200,"price":{"close_dollars":"0.4450"}}]`
	day := market.DateOf(start)
	for _, test := range []struct {
		path, list string
		read       func(d *Driver) (values []bool, errs []error, err error)
	}{
		{"/markets", `{"markets":[{"ticker":"A-1",` + quote + `},{` + quote + `}]}`, func(d *Driver) ([]bool, []error, error) {
			return valuesOf(d.Prices(t.Context(), upstream.Call{}, []string{"A-1:yes", "B-1:yes"}))
		}},
		{"/markets", `{"markets":[{"ticker":"A-1",` + quote + `},{"ticker":null,` + quote + `}]}`, func(d *Driver) ([]bool, []error, error) {
			return valuesOf(d.MarketsByID(t.Context(), upstream.Call{}, []string{"A-1", "B-1"}))
		}},
		{"/markets/candlesticks", `{"markets":[{"market_ticker":"A-1",` + candles + `},{` + candles + `}]}`, func(d *Driver) ([]bool, []error, error) {
			return valuesOf(d.PriceHistories(t.Context(), upstream.Call{}, []queries.PriceHistory{{TokenID: "A-1:yes", From: day, To: day}, {TokenID: "B-1:yes", From: day, To: day}}))
		}},
	} {
		d, s := newSigningDriver(t, map[string]func(url.Values) (int, string){test.path: text(test.list)})
		values, errs, err := test.read(d)
		if err != nil || !slices.Equal(values, []bool{true, false}) || errs[0] != nil || market.CodeOf(errs[1]) != market.CodeUpstreamBadResponse || len(s.calls) != 1 || len(s.drift) != 1 || !strings.Contains(s.drift[0], "element") {
			t.Errorf("for %s, there are the values %v, the errors %v and %v, the calls %q and the drift %q, want a value, UPSTREAM_BAD_RESPONSE, one call and a bad element", test.list, values, errs, err, s.calls, s.drift)
		}
	}
}

// valuesOf returns which results have a value, and the errors of the results.
func valuesOf[T any](got []upstream.Result[*T], err error) (values []bool, errs []error, _ error) {
	for _, r := range got {
		values, errs = append(values, r.Value != nil), append(errs, r.Err)
	}
	return values, errs, err
}

// TestArchiveFails checks that a failure of the archive affects only the markets that the list of markets lacks.
func TestArchiveFails(t *testing.T) {
	const list = `{"markets":[{"ticker":"A-1","status":"active"}]}`
	for _, archive := range []func(url.Values) (int, string){status(http.StatusInternalServerError), status(http.StatusNotFound), text(`{"rows":[]}`)} {
		d, _ := newDriver(t, map[string]func(url.Values) (int, string){"/markets": text(list), "/historical/markets": archive})
		values, errs, err := valuesOf(d.MarketsByID(t.Context(), upstream.Call{}, []string{"A-1", "B-1"}))
		if err != nil || !slices.Equal(values, []bool{true, false}) || errs[0] != nil || errs[1] == nil {
			t.Errorf("there are the values %v and the errors %v and %v, want a value of A-1 and an error of B-1", values, errs, err)
		}
		if values, errs, err := valuesOf(d.MarketsByID(t.Context(), upstream.Call{}, []string{"B-1"})); err == nil && (len(errs) != 1 || errs[0] == nil) {
			t.Errorf("if the list has no market, there are the values %v and no error", values)
		}
	}
}

// TestLongLists checks that a call for prices has at most 100 markets.
func TestLongLists(t *testing.T) {
	var tokens []string
	for i := range 101 {
		tokens = append(tokens, fmt.Sprintf("A-%d:yes", i))
	}
	d, s := newDriver(t, map[string]func(url.Values) (int, string){"/markets": text(`{"markets":[]}`), "/historical/markets": text(`{"markets":[]}`)})
	_, _ = d.Prices(t.Context(), upstream.Call{}, tokens)
	if len(s.calls) != 4 {
		t.Errorf("the prices of 101 markets need %d calls, want 2 for the list and 2 for the archive", len(s.calls))
	}
}

// status returns a function for stub.answers that returns an error.
func status(code int) func(url.Values) (int, string) {
	return func(url.Values) (int, string) {
		return code, `{"error":{"code":"authentication_error","message":"authentication_error","service":"api"}}`
	}
}

// describeBooks returns the levels of each book, or "none", or the code of the error.
func describeBooks(got []upstream.Result[*market.Book]) (out []string) {
	for _, r := range got {
		switch {
		case r.Err != nil:
			out = append(out, string(market.CodeOf(r.Err)))
		case r.Value == nil:
			out = append(out, "none")
		default:
			out = append(out, r.Value.TokenID+" "+levelsOf(r.Value))
		}
	}
	return out
}

func booksOf(tokens ...string) (list []queries.Book) {
	for _, id := range tokens {
		list = append(list, queries.Book{TokenID: id, Depth: 20})
	}
	return list
}

// TestKeyIDIsRedacted checks that the error of a refused key does not contain the id of the key if the venue's message contains the id.
func TestKeyIDIsRedacted(t *testing.T) {
	d, _ := newSigningDriver(t, map[string]func(url.Values) (int, string){"/markets/A-1/orderbook": func(url.Values) (int, string) {
		return http.StatusUnauthorized, `{"error":{"code":"x","message":"no quota for KEY-ID-1"}}`
	}})
	d.key = &Key{secret: &secret{"KEY-ID-1", newPrivate()}}
	_, err := d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes"))
	if why := errors.Unwrap(err); why == nil || !strings.Contains(why.Error(), "no quota for [redacted]") {
		t.Errorf("the cause of the error is %v, want the venue's message without the id of the key", why)
	}
}

// TestOtherCallsAreUnsigned checks that the driver signs only the calls for books.
func TestOtherCallsAreUnsigned(t *testing.T) {
	d, s := newSigningDriver(t, nil)
	_, _ = d.Prices(t.Context(), upstream.Call{}, []string{"A-1:yes"})
	_, _ = d.Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "A"})
	_, _ = d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "A-1"})
	if len(s.calls) == 0 || slices.ContainsFunc(s.calls, func(call string) bool { return strings.HasSuffix(call, " signed") }) {
		t.Errorf("the driver makes the calls %q, want only unsigned calls", s.calls)
	}
}

// TestLimits checks that the parts of the limit together fit into the bucket of the basic tier, and that each part allows three
// calls at once. A call must not cost more tokens than its part of the limit assumes.
func TestLimits(t *testing.T) {
	d, _ := newDriver(t, nil)
	var sum float64
	seen := map[upstream.Endpoint]bool{}
	for _, l := range Limits() {
		if sum += l.Refill; l.Refill != l.Burst || l.Burst/l.Cost < 3 {
			t.Errorf("a part of the limit is %+v; want a bucket for at least three calls", l)
		}
		for _, e := range l.Endpoints {
			cost := float64(callTokens)
			if e == upstream.EndpointBook || e == upstream.EndpointPriceHistory {
				cost *= float64(d.MaxKeys(e))
			}
			if seen[e] || cost != l.Cost {
				t.Errorf("a call of %s costs %v tokens and is in a part for calls of %v tokens; it is in another part: %t", e, cost, l.Cost, seen[e])
			}
			seen[e] = true
		}
	}
	if sum != bucketTokens || len(seen) != upstream.Endpoints {
		t.Errorf("the parts have %v tokens for %d endpoints, want %d tokens for %d", sum, len(seen), bucketTokens, upstream.Endpoints)
	}
}
