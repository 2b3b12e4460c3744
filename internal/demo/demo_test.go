package demo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"

	"go.uber.org/goleak"
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
