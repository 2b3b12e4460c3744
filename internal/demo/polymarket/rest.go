package polymarket

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/demo/server"
)

type (
	object  = server.Object
	refusal = server.Refusal
)

// refuse returns an error answer of the CLOB and Data APIs.
func refuse(status int, format string, arguments ...any) *refusal {
	return &refusal{Status: status, Body: object{"error": fmt.Sprintf(format, arguments...)}}
}

// invalid returns an error answer of the Gamma API.
func invalid(format string, arguments ...any) *refusal {
	return &refusal{Status: http.StatusUnprocessableEntity, Body: object{"type": "validation error", "error": fmt.Sprintf(format, arguments...)}}
}

type request struct{ *server.Call }

// list returns the values of a parameter. The request may repeat the parameter, or separate values by commas.
func (r *request) list(name string) (values []string) {
	for _, value := range r.Query[name] {
		values = append(values, strings.FieldsFunc(value, func(c rune) bool { return c == ',' })...)
	}
	return values
}

func (r *request) integer(name string, fallback, greatest int) int {
	n, ok := server.Number(r.Get(name), 1, greatest, fallback)
	if !ok {
		r.Refuse(invalid("%s is a number from 1 to %d", name, greatest))
	}
	return n
}

// cursor returns the number of a cursor parameter, or 0 if it is missing.
func (r *request) cursor(name string) uint64 {
	n, ok := server.ReadCursor(r.Get(name))
	if !ok {
		r.Refuse(invalid("invalid cursor"))
	}
	return n
}

// endpoint is a call of one of the APIs. per10s is the documented maximum number of requests in ten seconds.
type endpoint struct {
	pattern string
	per10s  int
	answer  func(*Venue, *request) any
}

var endpoints = []endpoint{
	{"POST /books", 500, (*Venue).answerBooks},
	{"POST /midpoints", 500, (*Venue).answerMidpoints},
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

func (v *Venue) routes() {
	for i := range endpoints {
		e := &endpoints[i]
		v.API.Endpoint(e.pattern, func(*server.Call) time.Duration { return v.wait(e) },
			func(c *server.Call) any { return e.answer(v, &request{c}) })
	}
	v.API.HandleFunc("GET "+StreamPath, v.serveStream)
}

// wait returns the time that a request must wait because of the limits of its path and of its API.
func (v *Venue) wait(e *endpoint) time.Duration {
	now := v.Clock.Now()
	wait, _, _ := v.limits.Take(e.pattern, e.per10s, now, true)
	if strings.HasPrefix(e.pattern, dataPrefix) {
		data, _, _ := v.limits.Take(dataPrefix, dataPer10s, now, true)
		wait = max(wait, data)
	}
	return wait
}

func jsonNumber(s fmt.Stringer) json.RawMessage { return json.RawMessage(s.String()) }

func stampOf(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
