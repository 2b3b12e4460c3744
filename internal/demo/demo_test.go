package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/tests/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClock() *tool.Clock {
	return tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
}

const (
	small  = "0x1111111111111111111111111111111111111111"
	medium = "0x2222222222222222222222222222222222222222"
	large  = "0x3333333333333333333333333333333333333333"
	other  = "0xAbCdEf0123456789abcdef0123456789ABCDEF01"
)

// credentials returns the query parameter credentials for an API key.
func credentials(key string) string {
	return "&credentials=" + url.QueryEscape(`{"apiKey":"`+key+`","secret":"demo","passphrase":"demo"}`)
}

// handle returns the venue's response to a request.
func handle(v http.Handler, r *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	v.ServeHTTP(recorder, r)
	return recorder
}

// send sends a GET request to the venue and returns the recorded response.
func send(v http.Handler, target string) *httptest.ResponseRecorder {
	return handle(v, httptest.NewRequest(http.MethodGet, target, nil))
}

// get sends a GET request that must succeed, and decodes the response.
func get[T any](t testing.TB, v http.Handler, target string) T {
	t.Helper()
	w := send(v, target)
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: got %d %s, want 200", target, w.Code, w.Body)
	}
	return decode[T](t, w.Body.String())
}

func decode[T any](t testing.TB, body string) T {
	t.Helper()
	var into T
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&into); err != nil {
		t.Fatalf("cannot decode %.300s: %v", body, err)
	}
	return into
}

// object is a decoded JSON object.
type object = map[string]any

// The fields of these types are the members of REST responses that the tests use.
type (
	levelAnswer struct{ Price, Size json.Number }
	bookAnswer  struct {
		Bids, Asks []levelAnswer
		Timestamp  time.Time
		Seq        uint64
		Epoch      string
	}
	marketAnswer struct {
		Question    string
		Description *string
	}
	positionAnswer struct {
		TokenID                                     string
		Size, AvgPrice, CurrentPrice, UnrealizedPnl json.Number
	}
	positionsAnswer struct{ Positions []positionAnswer }
	orderAnswer     struct {
		Status     string
		FilledSize json.Number
	}
	ordersAnswer  struct{ Orders []orderAnswer }
	balanceAnswer struct {
		PortfolioValue, CashBalance, TotalValue json.Number
		LastUpdated                             time.Time
	}
)

// fixed returns a JSON number multiplied by 10^scale, as an integer.
func fixed(t *testing.T, n json.Number, scale int) int64 {
	t.Helper()
	x, ok := parseFixed(n.String(), scale)
	if !ok {
		t.Fatalf("%q is not a number with at most %d decimals", n, scale)
	}
	return x
}

// first returns the first listed token that matches f.
func first(t *testing.T, v *Venue, f func(*token) bool) *token {
	t.Helper()
	for _, tok := range v.listing.tokens {
		if f(tok) {
			return tok
		}
	}
	t.Fatal("no listed token matches")
	return nil
}

func isOpen(t *token) bool { return t.market.status == statusOpen }

func TestMethods(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	target := "/api/exchange/prices?tokenId=" + v.listing.tokens[0].id
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405, "OPTIONS": 405} {
		w := handle(v, httptest.NewRequest(method, target, nil))
		if allow := w.Header().Get("Allow"); w.Code != status || (status == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s: got %d and Allow %q, want %d", method, w.Code, allow, status)
		}
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Markets: 40, Latency: 20 * time.Millisecond})
		began := time.Now()
		if w := send(v, "/api/exchange/market-search"); w.Code != 200 || time.Since(began) != 20*time.Millisecond {
			t.Errorf("got %d after %v, want 200 after 20ms", w.Code, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		began = time.Now()
		w := handle(v, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/exchange/market-search", nil))
		if time.Since(began) != 5*time.Millisecond || w.Body.Len() > 0 {
			t.Errorf("got a response after %v with %d bytes, want none after 5ms", time.Since(began), w.Body.Len())
		}
	})
}

// checkBook checks the book of a token. The books of the two tokens of a binary market must be mirror images.
func checkBook(t *testing.T, tok *token) {
	t.Helper()
	b, price := tok.book(), tok.lastPrice()
	if tok.market.status != statusOpen {
		if len(b.Bids)+len(b.Asks) > 0 {
			t.Fatalf("token %s: the market has the status %s, but the book is not empty", tok.id, tok.market.status)
		}
		return
	}
	down := func(a, b Level) int { return int(b.Price - a.Price) }
	up := func(a, b Level) int { return int(a.Price - b.Price) }
	if !slices.IsSortedFunc(b.Bids, down) || !slices.IsSortedFunc(b.Asks, up) {
		t.Fatalf("token %s: levels are not in order", tok.id)
	}
	for _, l := range slices.Concat(b.Bids, b.Asks) {
		if l.Price <= 0 || l.Price >= payout || l.Price%tok.market.tick != 0 || l.Size <= 0 {
			t.Fatalf("token %s: level %v is off the grid or empty", tok.id, l)
		}
	}
	if len(b.Bids) > 0 && b.Bids[0].Price > price || len(b.Asks) > 0 && b.Asks[0].Price < price {
		t.Fatalf("token %s: price %v lies outside the book", tok.id, price)
	}
	if len(b.Bids)+len(b.Asks) == 0 {
		t.Fatalf("token %s: the market is open, but the book is empty", tok.id)
	}
	if m := tok.market; m.binary() {
		twin := m.tokens[1-tok.outcome]
		mirrored := twin.book()
		for i, l := range b.Bids {
			if mirrored.Asks[i] != (Level{payout - l.Price, l.Size}) {
				t.Fatalf("market %s: ask %d of one token is %v, bid of the other %v", m.slug, i, mirrored.Asks[i], l)
			}
		}
		if tok.price()+twin.price() != payout || b.Seq != mirrored.Seq || len(b.Bids) != len(mirrored.Asks) || len(b.Asks) != len(mirrored.Bids) {
			t.Fatalf("market %s: the tokens have prices with another sum than 1, or different numbers of levels or sequence numbers", m.slug)
		}
	}
	spread, ok := tok.spread()
	if ok != (len(b.Bids) > 0 && len(b.Asks) > 0) {
		t.Fatalf("token %s: spread() reports a spread: %v; the book has %d bids and %d asks", tok.id, ok, len(b.Bids), len(b.Asks))
	}
	if ok && (spread != b.Asks[0].Price-b.Bids[0].Price || spread <= 0) {
		t.Fatalf("token %s: got spread %v, want the best ask minus the best bid", tok.id, spread)
	}
}
