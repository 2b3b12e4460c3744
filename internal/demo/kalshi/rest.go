package kalshi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"oddsgraph/internal/demo"
)

type object = map[string]any

type refusal struct {
	status int
	body   object
}

func refuse(status int, code, message string) *refusal {
	return &refusal{status, object{"error": object{"code": code, "message": message, "service": "simulator"}}}
}

var notFound = refuse(http.StatusNotFound, "not_found", "not found")

// endpoint is a call of the API. The field list names the parameter whose values are billed one by one. If list is empty, a call
// is billed once.
type endpoint struct {
	pattern, list string
	answer        func(*Venue, *http.Request, url.Values) (any, *refusal)
}

var endpoints = []endpoint{
	{"GET " + Path + "/exchange/status", "", (*Venue).answerStatus},
	{"GET " + Path + "/markets", "", (*Venue).answerMarkets},
	{"GET " + Path + "/historical/markets", "", (*Venue).answerArchive},
	{"GET " + Path + "/markets/{ticker}", "", (*Venue).answerMarket},
	{"GET " + Path + "/markets/trades", "", (*Venue).answerTrades},
	{"GET " + Path + "/historical/trades", "", (*Venue).answerArchivedTrades},
	{"GET " + Path + "/markets/{ticker}/orderbook", "", (*Venue).answerBook},
	{"GET " + Path + "/markets/orderbooks", "tickers", (*Venue).answerBooks},
	{"GET " + Path + "/markets/candlesticks", "market_tickers", (*Venue).answerCandles},
	{"GET " + Path + "/historical/markets/{ticker}/candlesticks", "", (*Venue).answerArchivedCandles},
	{"GET " + Path + "/events", "", (*Venue).answerEvents},
	{"GET " + Path + "/events/{ticker}", "", (*Venue).answerEvent},
	{"GET " + Path + "/series/{ticker}", "", (*Venue).answerSeries},
}

// The maximum number of bytes in a URL, and of values in a list parameter.
const (
	maxURL  = 8 << 10
	maxList = 100
)

// itemCost is the cost of a call, or of each item of a list, in tokens of the token bucket.
const itemCost = 10

func (v *Venue) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range endpoints {
		e := &endpoints[i]
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) { v.serve(e, w, r) })
	}
	mux.HandleFunc("GET "+StreamPath, v.serveStream)
	return mux
}

func (v *Venue) serve(e *endpoint, w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	items := 1
	if e.list != "" {
		items = len(list(query, e.list))
	}
	if e.list == "tickers" {
		items = min(items, len(query[e.list])) // answerBooks does not split a value at commas
	}
	if latency := v.config.Demo.Latency; latency > 0 && !demo.Pause(r.Context(), latency) {
		return
	}
	cost := itemCost * max(items, 1)
	var body any
	var refused *refusal
	switch {
	case !v.bucket.take(cost, v.config.TokensPerSecond, v.clock.Now()):
		refused = &refusal{http.StatusTooManyRequests, object{"error": "too many requests"}}
	case len(r.URL.RequestURI()) > maxURL:
		refused = refuse(http.StatusRequestURITooLong, "uri_too_long", "URI too long")
	case items > maxList || e.list != "" && items == 0:
		refused = refuse(http.StatusBadRequest, "invalid_parameters", e.list+" takes 1 to 100 values")
	default:
		body, refused = e.answer(v, r, query)
	}
	v.mu.Lock()
	v.calls[strings.TrimPrefix(e.pattern, "GET "+Path)]++
	v.spentTokens += cost
	v.mu.Unlock()
	status := http.StatusOK
	if refused != nil {
		status, body = refused.status, refused.body
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(demo.Encode(body)) // the client may have left
}

// list returns the values of a list parameter. The values are separated by commas. The query parameter "tickers" may be repeated
// instead.
func list(query url.Values, name string) (values []string) {
	if name == "tickers" && len(query[name]) > 1 {
		return query[name]
	}
	if query.Get(name) == "" {
		return nil
	}
	return strings.Split(query.Get(name), ",")
}

// number returns an integer parameter from 0 to greatest. It returns fallback if the parameter is missing or empty.
func number(query url.Values, name string, fallback, greatest int) (int, *refusal) {
	if query.Get(name) == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < 0 || n > greatest {
		return 0, refuse(http.StatusBadRequest, "invalid_parameters", name+" is out of range")
	}
	return n, nil
}

// cursorAt returns an opaque cursor for a number. readCursor returns the number of a cursor, or 0 for an empty cursor.
func cursorAt(n int) string {
	return base64.URLEncoding.EncodeToString([]byte("c" + strconv.Itoa(n)))
}

func readCursor(cursor string) (int, *refusal) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.URLEncoding.DecodeString(cursor)
	n, parseErr := strconv.Atoi(strings.TrimPrefix(string(text), "c"))
	if err != nil || parseErr != nil || n < 0 {
		return 0, refuse(http.StatusBadRequest, "invalid_parameters", "invalid cursor")
	}
	return n, nil
}

// bucket is a token bucket that holds the tokens of one second. The zero value is full.
type bucket struct {
	mu    sync.Mutex
	spent float64
	at    time.Time
}

// take removes tokens from the bucket if the bucket has enough tokens, and reports whether it did.
func (b *bucket) take(tokens, perSecond int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-now.Sub(b.at).Seconds()*float64(perSecond), 0)
	b.at = now
	if b.spent+float64(tokens) > float64(perSecond) {
		return false
	}
	b.spent += float64(tokens)
	return true
}
