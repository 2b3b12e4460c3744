package demo

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
)

// controlPrefix is the path prefix of the control endpoints:
//
//	GET  /__control/stats   the [Stats]
//	POST /__control/reset   zero the stats and clear the faults
//	POST /__control/faults  {"faults":[…]}, a list of [Fault] that replaces the previous one
//	POST /__control/price   {"tokenId":"…","price":0.65}, see [Venue.SetPrice]
//	POST /__control/trade   {"address":"0x…","tokenId":"…","side":"SELL","size":10}, see [Venue.Trade]; a sale without size sells all
//	POST /__control/market  {"marketId":"…","status":"CLOSED"}, see [Venue.SetStatus]
//	                        {"marketId":"…","winningTokenId":"…"}, see [Venue.Resolve]
//	                        {"marketId":"…","description":"…"}, see [Venue.Reword]
//	                        {"marketId":"…","tickSize":0.001}, see [Venue.SetTickSize]
//	POST /__control/step    {"steps":10}, see [Venue.Step]
//	POST /__control/restart {"code":4003}, see [Venue.Restart]
//
// The POST endpoints answer {"success":true}, or status 400 if the body is not valid. Rate limits, latency and faults don't apply
// to control endpoints.
const controlPrefix = "/__control/"

// Bounds of a control request.
const (
	maxControl = 1 << 20 // bytes of the body
	maxSteps   = 10_000
)

// Stats counts requests since the venue opened or was reset.
type Stats struct {
	// Requests counts the requests by path.
	Requests map[string]int64 `json:"requests"`
	// Keys counts, by path, the identifiers in the requests. A request without a list of identifiers counts as 1.
	Keys map[string]int64 `json:"keys"`
	// Statuses counts the responses by HTTP status, before a fault changes the status.
	Statuses map[string]int64 `json:"statuses"`
	Stream   StreamStats      `json:"stream"`
}

// stats has the counters of [Stats]. The index of an endpoint in requests and keys is its index in endpoints. The index in statuses
// is the HTTP status.
type stats struct {
	requests, keys [16]atomic.Int64
	statuses       [600]atomic.Int64
}

func (s *stats) count(endpoint, keys int) {
	s.requests[endpoint].Add(1)
	s.keys[endpoint].Add(int64(keys))
}

func (s *stats) countStatus(status int) { s.statuses[status].Add(1) }

// Stats returns the counts. The maps omit paths without requests and statuses without responses.
func (v *Venue) Stats() Stats {
	s := Stats{Requests: map[string]int64{}, Keys: map[string]int64{}, Statuses: map[string]int64{}}
	for i := range endpoints {
		if n := v.stats.requests[i].Load(); n > 0 {
			s.Requests[endpoints[i].path] = n
			s.Keys[endpoints[i].path] = v.stats.keys[i].Load()
		}
	}
	for status := range v.stats.statuses {
		if n := v.stats.statuses[status].Load(); n > 0 {
			s.Statuses[strconv.Itoa(status)] = n
		}
	}
	s.Stream = v.streamStats()
	return s
}

// Reset zeroes the stats and clears the faults. It does not change the markets.
func (v *Venue) Reset() {
	for i := range endpoints {
		v.stats.requests[i].Store(0)
		v.stats.keys[i].Store(0)
	}
	for i := range v.stats.statuses {
		v.stats.statuses[i].Store(0)
	}
	v.faults.set(nil)
	v.unfreeze()
	v.stream.counts.reset()
}

// crossOrigin rejects POST requests from web pages of other origins.
var crossOrigin = http.NewCrossOriginProtection()

func (v *Venue) serveControl(w http.ResponseWriter, r *http.Request) {
	a := newAnswer()
	defer a.release()
	if crossOrigin.Check(r) != nil { // a page can POST text/plain without a preflight request
		a.fail(errOrigin)
		a.send(w)
		return
	}
	name := r.URL.Path[len(controlPrefix):]
	method := http.MethodPost
	if name == "stats" {
		method = http.MethodGet
	}
	if r.Method != method {
		a.header.Set("Allow", method)
		a.fail(errMethod)
		a.send(w)
		return
	}
	var err error
	switch name {
	case "stats":
		a.body, err = json.Marshal(v.Stats())
	case "reset":
		v.Reset()
	case "faults":
		var faults []Fault
		if faults, err = ParseFaults(r.Body); err == nil {
			err = v.SetFaults(faults)
		}
	case "price":
		err = v.controlPrice(r)
	case "trade":
		err = v.controlTrade(r)
	case "market":
		err = v.controlMarket(r)
	case "step":
		err = v.controlStep(r)
	case "restart":
		err = v.controlRestart(r)
	default:
		a.fail(errPath)
		a.send(w)
		return
	}
	if err != nil {
		a.fail(badRequest(err.Error()))
	} else if len(a.body) == 0 {
		a.body = append(a.body, `{"success":true}`...)
	}
	a.send(w)
}

// readObject decodes one JSON object. It refuses unknown fields and any data after the object.
func readObject(document io.Reader, into any) error {
	d := json.NewDecoder(io.LimitReader(document, maxControl))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON object")
	}
	return nil
}

func (v *Venue) controlPrice(r *http.Request) error {
	var in struct {
		TokenID string      `json:"tokenId"`
		Price   json.Number `json:"price"`
	}
	if err := readObject(r.Body, &in); err != nil {
		return err
	}
	price, ok := parseFixed(in.Price.String(), 4)
	if !ok {
		return ErrPrice
	}
	return v.SetPrice(in.TokenID, Price(price))
}

func (v *Venue) controlTrade(r *http.Request) error {
	var in struct {
		Address string      `json:"address"`
		TokenID string      `json:"tokenId"`
		Side    Side        `json:"side"`
		Size    json.Number `json:"size"`
	}
	if err := readObject(r.Body, &in); err != nil {
		return err
	}
	if in.Size == "" && in.Side == Sell {
		return v.Trade(in.Address, in.TokenID, Sell, WholePosition)
	}
	size, ok := parseFixed(in.Size.String(), 2)
	if !ok || size < 0 {
		return ErrSize
	}
	return v.Trade(in.Address, in.TokenID, in.Side, Size(size))
}

func (v *Venue) controlStep(r *http.Request) error {
	in := struct {
		Steps int `json:"steps"`
	}{1}
	if err := readObject(r.Body, &in); err != nil {
		return err
	}
	if in.Steps < 1 || in.Steps > maxSteps {
		return errors.New("steps is a number from 1 to " + strconv.Itoa(maxSteps))
	}
	for range in.Steps {
		v.Step()
	}
	return nil
}

func (v *Venue) controlMarket(r *http.Request) error {
	var in struct {
		MarketID       string      `json:"marketId"`
		Status         string      `json:"status"`
		WinningTokenID string      `json:"winningTokenId"`
		Description    string      `json:"description"`
		TickSize       json.Number `json:"tickSize"`
	}
	if err := readObject(r.Body, &in); err != nil {
		return err
	}
	given := 0
	for _, s := range []string{in.Status, in.WinningTokenID, in.Description, in.TickSize.String()} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("exactly one of status, winningTokenId, description and tickSize is needed")
	case in.Status != "":
		return v.SetStatus(in.MarketID, in.Status)
	case in.WinningTokenID != "":
		return v.Resolve(in.MarketID, in.WinningTokenID)
	case in.Description != "":
		return v.Reword(in.MarketID, in.Description)
	}
	tick, ok := parseFixed(in.TickSize.String(), 4)
	if !ok {
		return ErrTickSize
	}
	return v.SetTickSize(in.MarketID, Price(tick))
}

func (v *Venue) controlRestart(r *http.Request) error {
	var in struct {
		Code int `json:"code"`
	}
	if err := readObject(r.Body, &in); err != nil {
		return err
	}
	if err := checkCode(in.Code); err != nil {
		return err
	}
	v.Restart(in.Code)
	return nil
}
