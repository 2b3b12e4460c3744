package kalshi

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"oddsgraph/internal/demo/server"
)

type (
	object  = server.Object
	refusal = server.Refusal
)

func refuse(status int, code, message string) *refusal {
	return &refusal{Status: status, Body: object{"error": object{"code": code, "message": message, "service": "simulator"}}}
}

var notFound = refuse(http.StatusNotFound, "not_found", "not found")

// endpoint is a call of the API. The field list names the parameter whose values are billed one by one. If list is empty, a call
// is billed once.
type endpoint struct {
	pattern, list string
	answer        func(*Venue, *server.Call) any
}

var endpoints = []endpoint{
	{"GET " + Path + "/markets", "", (*Venue).answerMarkets},
	{"GET " + Path + "/historical/markets", "", (*Venue).answerArchive},
	{"GET " + Path + "/markets/trades", "", (*Venue).answerTrades},
	{"GET " + Path + "/historical/trades", "", (*Venue).answerArchivedTrades},
	{"GET " + Path + "/markets/{ticker}/orderbook", "", (*Venue).answerBook},
	{"GET " + Path + "/markets/candlesticks", "market_tickers", (*Venue).answerCandles},
	{"GET " + Path + "/historical/markets/{ticker}/candlesticks", "", (*Venue).answerArchivedCandles},
	{"GET " + Path + "/events", "", (*Venue).answerEvents},
	{"GET " + Path + "/events/{ticker}", "", (*Venue).answerEvent},
	{"GET " + Path + "/series/{ticker}", "", (*Venue).answerSeries},
}

// maxList is the maximum number of values in a list parameter. itemCost is the cost of a call, or of each item of a list, in tokens
// of the token bucket.
const maxList, itemCost = 100, 10

func (v *Venue) routes() {
	for i := range endpoints {
		e := &endpoints[i]
		v.API.Endpoint(e.pattern, func(c *server.Call) time.Duration { return v.admit(e, c) },
			func(c *server.Call) any { return e.answer(v, c) })
	}
	v.API.HandleFunc("GET "+StreamPath, v.serveStream)
}

// admit takes the cost of a call from the token bucket. It refuses a call that exceeds a limit. No call waits.
func (v *Venue) admit(e *endpoint, c *server.Call) time.Duration {
	items := 1
	if e.list != "" {
		items = len(list(c.Query, e.list))
	}
	c.Keys = max(items, 1)
	switch {
	case !v.bucket.Take(itemCost*c.Keys, v.config.TokensPerSecond, v.Clock.Now()):
		c.Refuse(&refusal{Status: http.StatusTooManyRequests, Body: object{"error": "too many requests"}})
	case e.list != "" && (items > maxList || items == 0):
		c.Refuse(wrong(e.list + " takes 1 to 100 values"))
	}
	return 0
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

func wrong(message string) *refusal {
	return refuse(http.StatusBadRequest, "invalid_parameters", message)
}

// number returns an integer parameter from 0 to greatest. It returns fallback if the parameter is missing or empty.
func number(c *server.Call, name string, fallback, greatest int) int {
	n, ok := server.Number(c.Get(name), 0, greatest, fallback)
	if !ok {
		c.Refuse(wrong(name + " is out of range"))
	}
	return n
}

func readCursor(c *server.Call) int {
	n, ok := server.ReadCursor(c.Get("cursor"))
	if !ok {
		c.Refuse(wrong("invalid cursor"))
	}
	return int(n)
}
