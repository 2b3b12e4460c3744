package polymarket

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/demo"
)

type object = map[string]any

type refusal struct {
	status int
	body   object
}

// refuse returns an error answer of the CLOB and Data APIs.
func refuse(status int, format string, arguments ...any) *refusal {
	return &refusal{status, object{"error": fmt.Sprintf(format, arguments...)}}
}

// invalid returns an error answer of the Gamma API.
func invalid(format string, arguments ...any) *refusal {
	return &refusal{http.StatusUnprocessableEntity, object{"type": "validation error", "error": fmt.Sprintf(format, arguments...)}}
}

// request is a call with its parameters. keyCount is the number of identifiers in the request, or 1 if the request has no list of
// identifiers.
type request struct {
	*http.Request
	keyCount int
}

func (r *request) get(name string) string { return r.URL.Query().Get(name) }

// list returns the values of a parameter. The request may repeat the parameter, or separate values by commas.
func (r *request) list(name string) (values []string) {
	for _, value := range r.URL.Query()[name] {
		values = append(values, strings.FieldsFunc(value, func(c rune) bool { return c == ',' })...)
	}
	return values
}

// integer returns an integer parameter from 1 to greatest. It returns fallback if the parameter is missing or empty.
func (r *request) integer(name string, fallback, greatest int) (int, *refusal) {
	if r.get(name) == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(r.get(name))
	if err != nil || n < 1 || n > greatest {
		return 0, invalid("%s is a number from 1 to %d", name, greatest)
	}
	return n, nil
}

// endpoint is a call of one of the APIs. per10s is the documented maximum number of requests in ten seconds.
type endpoint struct {
	pattern string
	per10s  int
	answer  func(*Venue, *request) (any, *refusal)
}

var endpoints = []endpoint{
	{"GET /book", 1500, (*Venue).answerBook},
	{"POST /books", 500, (*Venue).answerBooks},
	{"POST /midpoints", 500, (*Venue).answerMidpoints},
	{"POST /prices", 500, (*Venue).answerPrices},
	{"POST /spreads", 500, (*Venue).answerSpreads},
	{"POST /last-trades-prices", 9000, (*Venue).answerLastTrades},
	{"POST /batch-prices-history", 1000, (*Venue).answerHistories},
	{"GET /markets/{condition}", 9000, (*Venue).answerClobMarket},
	{"GET /markets/keyset", 300, (*Venue).answerMarkets},
	{"GET /events/keyset", 500, (*Venue).answerEvents},
	{"GET /public-search", 350, (*Venue).answerSearch},
	{"GET /tags/slug/{slug}", 200, (*Venue).answerTag},
	{"GET /v2/positions", 150, (*Venue).answerPositions},
	{"GET /v2/value", 1000, (*Venue).answerValue},
	{"GET /v2/trades", 200, (*Venue).answerTrades},
	{"GET /v2/activity", 1000, (*Venue).answerActivity},
}

// The Data API also has a documented limit for all its paths together.
const (
	dataPrefix = "GET /v2/"
	dataPer10s = 1000
)

// Bounds of a request.
const (
	maxURL  = 8 << 10
	maxBody = 1 << 20
)

func (v *Venue) routes(latency time.Duration) *http.ServeMux {
	mux := http.NewServeMux()
	for i := range endpoints {
		e := &endpoints[i]
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) { v.serve(e, latency, w, r) })
	}
	mux.HandleFunc("GET "+StreamPath, v.serveStream)
	return mux
}

// wait returns the time that a request must wait because of the limits of its path and of its API.
func (v *Venue) wait(e *endpoint) time.Duration {
	now := v.clock.Now()
	wait := v.limits.admit(e.pattern, e.per10s, now)
	if strings.HasPrefix(e.pattern, dataPrefix) {
		wait = max(wait, v.limits.admit(dataPrefix, dataPer10s, now))
	}
	return wait
}

func (v *Venue) serve(e *endpoint, latency time.Duration, w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, keyCount: 1}
	wait := v.wait(e)
	var body any
	status := http.StatusOK
	var refused *refusal
	if len(r.URL.RequestURI()) > maxURL {
		refused = refuse(http.StatusRequestURITooLong, "URI too long")
	} else {
		if wait += latency; wait > 0 && !demo.Pause(r.Context(), wait) {
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, refused = e.answer(v, q)
	}
	if refused != nil {
		status, body = refused.status, refused.body
	}
	v.count(e.pattern, q.keyCount, status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(demo.Encode(body))
}

func jsonNumber(s fmt.Stringer) json.RawMessage { return json.RawMessage(s.String()) }

func stampOf(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// cursorAt returns an opaque cursor for a number. readCursor returns the number of a cursor, or 0 for an empty cursor.
func cursorAt(n uint64) string {
	return base64.URLEncoding.EncodeToString(strconv.AppendUint([]byte("k"), n, 10))
}

func readCursor(cursor string) (uint64, *refusal) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.URLEncoding.DecodeString(cursor)
	n, parseErr := strconv.ParseUint(strings.TrimPrefix(string(text), "k"), 10, 63) // fits an int
	if err != nil || parseErr != nil || len(text) == 0 || text[0] != 'k' {
		return 0, invalid("invalid cursor")
	}
	return n, nil
}
