package generic

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// TestSpreadsWithoutTheEndpoint checks that the client takes spreads from order books if the venue has no spreads endpoint. It calls
// the missing endpoint only until this is decided.
func TestSpreadsWithoutTheEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		// undecided is the number of calls of a read of two spreads before it is decided that the venue has none.
		undecided int
	}{
		"404":  {answerWith(404, "application/json", `{"success":false}`), 5},
		"400":  {answerWith(400, "application/json", `{"success":false}`), 5},
		"501":  {answerWith(501, "application/json", ``), 5},
		"HTML": {answerWith(404, "text/html", `<h1>Not Found</h1>`), 3},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVenue(t, map[string]http.HandlerFunc{
				paths[upstream.EndpointSpreads]: test.serve,
				paths[upstream.EndpointBook]:    answer(`{"bids":[{"price":0.4,"size":1}],"asks":[{"price":0.43,"size":2}],"spread":0.03}`),
			})
			for value, calls := range map[string]int{"": test.undecided, byBook: 2} {
				c, before := v.client(t, with(func(table *Table) { table[settingSpreads] = value })), v.count()
				results, err := c.Spreads(t.Context(), upstream.Call{}, []string{"101", "102"})
				must(t, err)
				for _, r := range results {
					if r.Err != nil || r.Value == nil || !r.Value.FromBook || r.Value.BestBid.String() != "0.4" || r.Value.BestAsk.String() != "0.43" || r.Value.Spread.String() != "0.03" {
						t.Errorf("with spreads:%s, a result is %+v, want the spread of the book", value, r)
					}
				}
				if got := v.count() - before; got != calls {
					t.Errorf("with spreads:%s, the read made %d calls, want %d: %v", value, got, calls, v.queries()[before:])
				}
				if got := c.Cost(upstream.EndpointSpreads, 2, 6); (got == 2) != (value == byBook) {
					t.Errorf("with spreads:%s, the cost of two spreads is %d", value, got)
				}
			}
		})
	}
}

// testBook is the response of the book endpoint for the tokens 101 and 102. testSpreads is the response of the spreads endpoint for
// both tokens.
const (
	testBook    = `{"bids":[{"price":0.4,"size":1}],"asks":[{"price":0.43,"size":2}],"spread":0.03}`
	testSpreads = `{"spreads":[{"tokenId":"101","bestBid":0.4,"bestAsk":0.43},{"tokenId":"102","bestBid":0.4,"bestAsk":0.43}]}`
)

// TestSpreadsFailOverToBooks checks that the client reads order books while the spreads endpoint fails. After the backoff, the
// client must call the spreads endpoint again.
func TestSpreadsFailOverToBooks(t *testing.T) {
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		// The test makes two reads and does not advance the clock between them. first and second are the numbers of calls to the
		// spreads endpoint in these reads.
		first, second int
	}{
		"500":             {answerWith(500, "application/json", `{"success":false}`), 1, 0},
		"502 HTML":        {answerWith(502, "text/html", `<h1>Bad Gateway</h1>`), 1, 0},
		"503":             {answerWith(503, "application/json", ``), 1, 0},
		"504":             {answerWith(504, "application/json", ``), 1, 0},
		"timeout":         {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 1, 0},
		"reset":           {reset, 1, 0},
		"success:false":   {answer(`{"success":false,"code":"INTERNAL"}`), 1, 0},
		"200 HTML":        {answerWith(200, "text/html", `<h1>Hello</h1>`), 1, 1}, // an unreadable response starts no backoff
		"another form":    {answer(`{"spreads":7}`), 1, 1},
		"bad elements":    {answer(`{"spreads":[{"tokenId":"101","spread":true},{"tokenId":"102","spread":7}]}`), 1, 1},
		"one bad element": {answer(`{"spreads":[{"tokenId":"101","bestBid":0.4,"bestAsk":0.43},{"tokenId":"102","spread":7}]}`), 1, 1},
		"only a message":  {answer(`{"error":"out of order"}`), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var fails atomic.Bool
			var spreads, books atomic.Int32
			v := newVenue(t, map[string]http.HandlerFunc{
				paths[upstream.EndpointSpreads]: func(w http.ResponseWriter, r *http.Request) {
					if spreads.Add(1); fails.Load() {
						test.serve(w, r)
						return
					}
					answer(testSpreads)(w, r)
				},
				paths[upstream.EndpointBook]: func(w http.ResponseWriter, r *http.Request) {
					books.Add(1)
					answer(testBook)(w, r)
				},
			})
			clock := tool.NewClock(time.Unix(1_700_000_000, 0))
			c := v.client(t, func(cfg *Config) {
				cfg.Clock = clock
				if name == "timeout" {
					cfg.Timeout = 100 * time.Millisecond
				}
			})
			// read reads the spreads of two tokens. The client must make wantSpreads calls to the spreads endpoint. It must take wantBooks
			// spreads from order books, with one call for each book.
			read := func(when string, wantSpreads, wantBooks int) {
				t.Helper()
				spreads.Store(0)
				books.Store(0)
				results, err := c.Spreads(t.Context(), upstream.Call{}, []string{"101", "102"})
				if err != nil {
					t.Fatalf("the read %s returned the error %v", when, err)
				}
				marked := 0
				for _, r := range results {
					if r.Err != nil || r.Value == nil || r.Value.BestBid.String() != "0.4" || r.Value.BestAsk.String() != "0.43" || r.Value.Spread.String() != "0.03" {
						t.Fatalf("a result of the read %s is %+v", when, r)
					}
					if r.Value.Basis() == market.SpreadOfBook {
						marked++
					}
				}
				if marked != wantBooks || int(books.Load()) != wantBooks || int(spreads.Load()) != wantSpreads {
					t.Errorf("in the read %s, %d spreads came from books, want %d; the client made %d calls to the spreads endpoint, want %d, and %d to the book endpoint", when, marked, wantBooks, spreads.Load(), wantSpreads, books.Load())
				}
			}
			bookSpreads := 2
			if name == "one bad element" {
				bookSpreads = 1
			}
			for range 2 {
				fails.Store(true)
				read("during the failure", test.first, bookSpreads)
				read("in the backoff", test.second, bookSpreads)
				fails.Store(false)
				clock.Advance(rest.MaxBackoff)
				read("after the failure", 1, 0)
				if got := c.Cost(upstream.EndpointSpreads, 2, 6); got != 1 {
					t.Errorf("the cost of two spreads is %d, want 1", got)
				}
			}
		})
	}
}

// TestBooksForSpreadsAreBounded checks the maximum number of calls for order books if the spreads endpoint fails.
func TestBooksForSpreadsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		book  func(n int32) http.HandlerFunc
		most  int32
		found bool
		code  market.Code
	}{
		"books fail too": {func(int32) http.HandlerFunc { return answerWith(500, "application/json", `{}`) }, 1, false, market.CodeUpstreamUnavailable},
		"no book":        {func(int32) http.HandlerFunc { return answerWith(404, "application/json", `{}`) }, 40, false, market.CodeUpstreamUnavailable},
		"rate limit": {func(n int32) http.HandlerFunc {
			if n == 1 {
				return answer(testBook)
			}
			return answerWith(429, "application/json", `{}`)
		}, 1 + rest.Parallel, true, market.CodeUpstreamUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var books atomic.Int32
			v := newVenue(t, map[string]http.HandlerFunc{
				paths[upstream.EndpointSpreads]: answerWith(500, "application/json", `{}`),
				paths[upstream.EndpointBook]:    func(w http.ResponseWriter, r *http.Request) { test.book(books.Add(1))(w, r) },
			})
			results, err := v.client(t).Spreads(t.Context(), upstream.Call{}, idsOf("T%d", 40))
			if (err == nil) != test.found || books.Load() > test.most {
				t.Errorf("the read returned the error %v after %d calls for books, want success %t after at most %d", err, books.Load(), test.found, test.most)
			}
			for i, r := range results {
				if found := r.Value != nil; found != (test.found && i == 0) || !found && market.CodeOf(r.Err) != test.code {
					t.Errorf("the result of token %d is %+v", i, r)
				}
			}
		})
	}
}

// TestFailedBooksAreNotMissingSpreads checks the spreads of four tokens of a venue without a spreads endpoint. If the book of a token
// cannot be read, its spread has an error, and the other tokens have their spreads, wherever the token is in the list. A token
// without a book has no spread and no error. If the venue limits the calls, the remaining tokens have an error, too.
func TestFailedBooksAreNotMissingSpreads(t *testing.T) {
	endpoints := map[string]http.HandlerFunc{
		"404": answerWith(404, "application/json", `{"success":false}`), "400": answerWith(400, "application/json", `{"success":false}`),
		"501": answerWith(501, "application/json", ``), "HTML": answerWith(404, "text/html", `<h1>Not Found</h1>`), "an empty list": answer(`{"spreads":[]}`),
	}
	books := map[string]http.HandlerFunc{
		"crossed":       answer(`{"bids":[{"price":0.6,"size":1}],"asks":[{"price":0.5,"size":1}]}`),
		"negative size": answer(`{"bids":[{"price":0.6,"size":-1}],"asks":[]}`),
		"500":           answerWith(500, "application/json", `{}`),
		"400":           answerWith(400, "application/json", `{}`),
		"429":           answerWith(429, "application/json", `{}`),
		"404":           answerWith(404, "application/json", `{}`),
	}
	ids := []string{"T0", "T1", "T2", "T3"}
	for endpoint, serve := range endpoints {
		for name, bad := range books {
			for at := range ids {
				v := newVenue(t, map[string]http.HandlerFunc{
					paths[upstream.EndpointSpreads]: serve,
					paths[upstream.EndpointBook]: func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Query().Get("tokenId") == ids[at] {
							bad(w, r)
							return
						}
						answer(testBook)(w, r)
					},
				})
				results, err := v.client(t, undecided).Spreads(t.Context(), upstream.Call{}, ids)
				if allLimited := name == "429" && at == 0; err != nil && !allLimited {
					t.Errorf("endpoint %s, book %s of token %d: Spreads returns the error %v", endpoint, name, at, err)
				}
				for i, r := range results {
					known := r.Err == nil && r.Value != nil && r.Value.BestBid.String() == "0.4" && r.Value.BestAsk.String() == "0.43"
					limited := name == "429" && i > at && r.Err != nil
					if failed := r.Value == nil && (r.Err == nil) == (name == "404"); i == at && !failed || i != at && !known && !limited {
						t.Errorf("endpoint %s, book %s of token %d: the result of token %d is %+v", endpoint, name, at, i, r)
					}
				}
			}
		}
	}
}

// TestSpreadsWithoutNeedForBooks checks that the client reads no order books if the spreads endpoint works, or if the rate limit is
// exceeded. If the endpoint does not know the token, or does not exist, one book shows it.
func TestSpreadsWithoutNeedForBooks(t *testing.T) {
	var status, books atomic.Int32
	v := newVenue(t, map[string]http.HandlerFunc{
		paths[upstream.EndpointSpreads]: func(w http.ResponseWriter, r *http.Request) {
			answerWith(int(status.Load()), "application/json", `{"bestBid":0.4,"bestAsk":0.43}`)(w, r)
		},
		paths[upstream.EndpointBook]: func(w http.ResponseWriter, r *http.Request) {
			books.Add(1)
			answerWith(404, "application/json", `{}`)(w, r)
		},
	})
	c := v.client(t)
	for _, test := range []struct{ status, books int32 }{{200, 0}, {404, 1}, {429, 0}} {
		status.Store(test.status)
		books.Store(0)
		results, err := c.Spreads(t.Context(), upstream.Call{}, []string{"101"})
		if (err != nil) != (test.status == 429) || books.Load() != test.books {
			t.Errorf("after the status %d, the read returned %+v and the error %v after %d calls for books, want %d", test.status, results, err, books.Load(), test.books)
		}
	}
}
