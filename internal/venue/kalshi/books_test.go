package kalshi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/tests/tool"
)

// TestOneCallFillsBothTokens checks that a read of both tokens of a market requests the market only once.
func TestOneCallFillsBothTokens(t *testing.T) {
	d, s := newSigningDriver(t, map[string]func(url.Values) (int, string){"/markets/orderbooks": text(
		`{"orderbooks":[{"ticker":"A-1","orderbook_fp":{"yes_dollars":[["0.4000","3.00"]],"no_dollars":[["0.5500","4.00"]]}},{"ticker":"B-1","orderbook_fp":{"yes_dollars":[["0.1000","1.00"]],"no_dollars":[]}}]}`)})
	got, err := d.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: "A-1:yes", Depth: 20}, {TokenID: "B-1:no", Depth: 20}, {TokenID: "A-1:no", Depth: 50}})
	if err != nil {
		t.Fatal(err)
	}
	var books []string
	for _, r := range got {
		books = append(books, r.Value.TokenID+" "+levelsOf(r.Value))
	}
	if want := []string{"A-1:yes 0.4×3 | 0.45×4 | ", "B-1:no | 0.9×1 | ", "A-1:no 0.55×4 | 0.6×3 | "}; !slices.Equal(books, want) {
		t.Errorf("the books are %q; want %q", books, want)
	}
	s.want(t, "/markets/orderbooks?tickers=A-1&tickers=B-1 signed")
}

// TestRowWithoutTicker checks lists with a row whose ticker is missing. The row may belong to any of the requested markets, so a
// market without a row has an error and is not unknown. The driver must not ask the archive for this market.
func TestRowWithoutTicker(t *testing.T) {
	quote := `"status":"active","yes_bid_dollars":"0.4000","yes_ask_dollars":"0.5000"`
	book := `"orderbook_fp":{"yes_dollars":[["0.4000","3.00"]],"no_dollars":[]}`
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
		{"/markets/orderbooks", `{"orderbooks":[{"ticker":"A-1",` + book + `},{` + book + `}]}`, func(d *Driver) ([]bool, []error, error) {
			return valuesOf(d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes", "B-1:yes")))
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

// TestEmptyBooks checks that the book of a market without orders is empty, and that the book of an unknown market is nil.
func TestEmptyBooks(t *testing.T) {
	empty := `{"yes_dollars":[],"no_dollars":null}`
	d, s := newSigningDriver(t, map[string]func(url.Values) (int, string){
		"/markets/orderbooks": text(`{"orderbooks":[{"ticker":"A-1","orderbook_fp":` + empty + `},{"ticker":"B-1","orderbook_fp":` + empty + `}]}`),
		"/markets":            text(`{"markets":[{"ticker":"A-1","status":"active"}],"cursor":""}`),
		"/historical/markets": text(`{"markets":[],"cursor":""}`),
	})
	got, err := d.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: "A-1:yes", Depth: 20}, {TokenID: "B-1:yes", Depth: 20}})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Value == nil || got[0].Value.Bids.Len()+got[0].Value.Asks.Len() != 0 || got[1].Value != nil || got[1].Err != nil {
		t.Errorf("the results are %+v for the market without orders and %+v for the unknown market; want an empty book and no book", got[0], got[1])
	}
	s.want(t, "/markets/orderbooks?tickers=A-1&tickers=B-1 signed", "/markets?tickers=A-1,B-1&limit=2", "/historical/markets?tickers=B-1&limit=1")
}

// TestBooksFitTheBucket checks that the driver splits a read of 45 books into calls of at most maxBilled books.
func TestBooksFitTheBucket(t *testing.T) {
	d, s := newSigningDriver(t, map[string]func(url.Values) (int, string){"/markets/orderbooks": func(q url.Values) (int, string) {
		var rows []string
		for _, ticker := range q["tickers"] {
			rows = append(rows, fmt.Sprintf(`{"ticker":%q,"orderbook_fp":{"yes_dollars":[["0.4000","3.00"]]}}`, ticker))
		}
		return http.StatusOK, `{"orderbooks":[` + strings.Join(rows, ",") + `]}`
	}})
	var list []queries.Book
	for i := range 45 {
		list = append(list, queries.Book{TokenID: fmt.Sprintf("A-%d:yes", i), Depth: 20})
	}
	got, err := d.Books(t.Context(), upstream.Call{}, list)
	if err != nil || slices.ContainsFunc(got, func(r upstream.Result[*market.Book]) bool { return r.Value == nil }) {
		t.Errorf("Books returns the error %v and the results %v, want 45 books", err, got)
	}
	for _, call := range s.calls {
		if n := strings.Count(call, "tickers="); n > maxBilled {
			t.Errorf("a call for %d books costs %d tokens", n, n*callTokens)
		}
	}
	if len(s.calls) != 9 {
		t.Errorf("45 books need %d calls; want 9", len(s.calls))
	}
}

// TestLongLists checks that a call for prices, and a command for snapshots, has at most 100 markets.
func TestLongLists(t *testing.T) {
	var tokens []string
	var topics []messages.Topic
	for i := range 101 {
		tokens = append(tokens, fmt.Sprintf("A-%d:yes", i))
		topics = append(topics, book(tokens[i]))
	}
	d, s := newDriver(t, map[string]func(url.Values) (int, string){"/markets": text(`{"markets":[]}`), "/historical/markets": text(`{"markets":[]}`)})
	_, _ = d.Prices(t.Context(), upstream.Call{}, tokens)
	if len(s.calls) != 4 {
		t.Errorf("the prices of 101 markets need %d calls, want 2 for the list and 2 for the archive", len(s.calls))
	}
	r := newRig(t)
	seq := r.open(topics...)
	r.frame(deltaFrame(seq+2, "A-0", "yes", "0.4000", "1.00"))
	if commands := r.request(stream.VerbResync, topics[0]); len(commands) != 2 {
		t.Errorf("the snapshots of 101 books need %d commands, want 2", len(commands))
	}
}

// bookOf returns a response with the book of one market, in the form of the path /markets/{ticker}/orderbook.
func bookOf(bid string) func(url.Values) (int, string) {
	return text(`{"orderbook_fp":{"yes_dollars":[["` + bid + `","3.00"]],"no_dollars":null}}`)
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

// TestBooksWithoutKey checks that a driver without a key reads each book with the call that needs no key. One call returns the
// books of both tokens of a market. If one of the calls fails, only the books of its market have an error.
func TestBooksWithoutKey(t *testing.T) {
	d, s := newDriver(t, map[string]func(url.Values) (int, string){
		"/markets/orderbooks": status(http.StatusUnauthorized), "/markets/A-1/orderbook": bookOf("0.4000"), "/markets/B-1/orderbook": bookOf("0.2000"),
		"/markets/C-1/orderbook": status(http.StatusInternalServerError), "/markets/E-1/orderbook": text(`{"orderbook":{}}`),
	})
	got, err := d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes", "B-1:no", "A-1:no", "C-1:yes", "D-1:yes", "E-1:yes"))
	want := []string{"A-1:yes 0.4×3 | | ", "B-1:no | 0.8×3 | ", "A-1:no | 0.6×3 | ", "UPSTREAM_UNAVAILABLE", "none", "UPSTREAM_BAD_RESPONSE"}
	if books := describeBooks(got); err != nil || !slices.Equal(books, want) {
		t.Errorf("the books are %q and the error is %v; want %q", books, err, want)
	}
	slices.Sort(s.calls) // the calls are concurrent
	s.want(t, "/markets/A-1/orderbook", "/markets/B-1/orderbook", "/markets/C-1/orderbook", "/markets/D-1/orderbook", "/markets/E-1/orderbook")
}

// TestRefusedKey checks that the books are read without the key if the venue refuses the key. The driver tries the key again after ten
// minutes. Another error of the call for several books remains an error.
func TestRefusedKey(t *testing.T) {
	for code, refused := range map[int]bool{http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusInternalServerError: false} {
		s := &stub{answers: map[string]func(url.Values) (int, string){
			"/markets/orderbooks": status(code), "/markets/A-1/orderbook": bookOf("0.4000"), "/markets/B-1/orderbook": status(http.StatusInternalServerError),
		}}
		clock := tool.NewClock(start)
		d, err := New(rest.Config{Transport: s, Clock: clock, Retries: -1}, testKey())
		if err != nil {
			t.Fatal(err)
		}
		cost := d.Cost(upstream.EndpointBook, 7, 0)
		got, err := d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes", "B-1:yes"))
		if !refused {
			if market.CodeOf(err) != market.CodeUpstreamUnavailable || len(s.calls) != 1 {
				t.Errorf("after the status %d, Books makes the calls %q and returns the error %v; want one call and an error", code, s.calls, err)
			}
			continue
		}
		if books, want := describeBooks(got), []string{"A-1:yes 0.4×3 | | ", "UPSTREAM_UNAVAILABLE"}; err != nil || !slices.Equal(books, want) {
			t.Errorf("after the status %d, the books are %q and the error is %v; want %q", code, books, err, want)
		}
		if after := d.Cost(upstream.EndpointBook, 7, 0); cost != 2 || after != 7 {
			t.Errorf("seven books cost %d calls with a key and %d after the venue has refused the key; want 2 and 7", cost, after)
		}
		clock.Advance(10*time.Minute - time.Second)
		_, _ = d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes"))
		clock.Advance(time.Second)
		_, _ = d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes"))
		s.want(t, "/markets/orderbooks?tickers=A-1&tickers=B-1 signed", "/markets/A-1/orderbook", "/markets/B-1/orderbook", "/markets/A-1/orderbook",
			"/markets/orderbooks?tickers=A-1 signed", "/markets/A-1/orderbook")
	}
}

// TestKeyIDIsRedacted checks that an error does not contain the id of the key if the venue's message contains the id.
func TestKeyIDIsRedacted(t *testing.T) {
	d, _ := newSigningDriver(t, map[string]func(url.Values) (int, string){"/markets/orderbooks": func(url.Values) (int, string) {
		return http.StatusInternalServerError, `{"error":{"code":"x","message":"no quota for KEY-ID-1"}}`
	}})
	d.key = &Key{&secret{"KEY-ID-1", newPrivate()}}
	_, err := d.Books(t.Context(), upstream.Call{}, booksOf("A-1:yes"))
	if why := errors.Unwrap(err); why == nil || !strings.Contains(why.Error(), "no quota for [redacted]") {
		t.Errorf("the cause of the error is %v, want the venue's message without the id of the key", why)
	}
}

// TestOtherCallsAreUnsigned checks that the driver signs only the call for several books.
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
	for _, hasKey := range []bool{false, true} {
		d, _ := newDriver(t, nil)
		if hasKey {
			d.key = testKey()
		}
		var sum float64
		seen := map[upstream.Endpoint]bool{}
		for _, l := range Limits(hasKey) {
			if sum += l.Refill; l.Refill != l.Burst || l.Burst/l.Cost < 3 {
				t.Errorf("with a key (%t), a part of the limit is %+v; want a bucket for at least three calls", hasKey, l)
			}
			for _, e := range l.Endpoints {
				cost := float64(callTokens)
				if e == upstream.EndpointBook || e == upstream.EndpointPriceHistory {
					cost *= float64(d.MaxKeys(e))
				}
				if seen[e] || cost != l.Cost {
					t.Errorf("with a key (%t), a call of %s costs %v tokens and is in a part for calls of %v tokens; it is in another part: %t", hasKey, e, cost, l.Cost, seen[e])
				}
				seen[e] = true
			}
		}
		if sum != bucketTokens || len(seen) != upstream.Endpoints {
			t.Errorf("with a key (%t), the parts have %v tokens for %d endpoints, want %d tokens for %d", hasKey, sum, len(seen), bucketTokens, upstream.Endpoints)
		}
	}
}
