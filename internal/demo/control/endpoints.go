package control

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/demo/server"
)

// controlPrefix is the path prefix of the control endpoints. docs/ui-testing.md describes them:
//
//	GET  /__control/stats   the counts of the venue
//	POST /__control/reset   zero the counts and clear the faults
//	GET  /__control/faults  {"faults":[…]}, the active faults
//	POST /__control/faults  {"faults":[…]}, a list of [faults.Fault] that replaces the previous one
//	POST /__control/restart {"code":1012}, see [demo.Venue.Restart]; code 0 leaves the streams open
//	POST /__control/price   {"tokenId":"…","price":0.65}, see [demo.Venue.SetPrice]
//	POST /__control/trade   {"address":"0x…","tokenId":"…","side":"SELL","size":10}, see [demo.Venue.Trade]; a sale without size sells all
//	POST /__control/market  {"marketId":"…","status":"CLOSED"}, see [demo.Venue.SetStatus]
//	                        {"marketId":"…","winningTokenId":"…"}, see [demo.Venue.Resolve]
//	                        {"marketId":"…","description":"…"}, see [demo.Venue.Reword]
//	                        {"marketId":"…","tickSize":0.001}, see [demo.Venue.SetTickSize]
//	POST /__control/step    {"steps":10}, see [demo.Venue.Step]
//
// The POST endpoints answer {"success":true}, or status 400 if the body is not valid.
const controlPrefix = "/__control/"

// Bounds of a control request.
const (
	maxControl = 1 << 20 // bytes of the body
	maxSteps   = 10_000
)

// crossOrigin rejects POST requests from web pages of other origins. A page can POST text/plain without a preflight request.
var crossOrigin = http.NewCrossOriginProtection()

// errAbsent is the error of an endpoint that does not exist.
var errAbsent = errors.New("no such endpoint")

func (s *Server) serveControl(name string, w http.ResponseWriter, r *http.Request) {
	var out any = map[string]bool{"success": true}
	status := http.StatusOK
	var err error
	switch {
	case crossOrigin.Check(r) != nil:
		status, err = http.StatusForbidden, errors.New("control endpoints are not for pages of other origins")
	case r.Method == http.MethodGet && name == "faults":
		out = map[string]any{"faults": s.Faults.Faults()}
	case r.Method == http.MethodGet && name == "stats" && s.venue != nil:
		out = s.venue.Stats()
	case r.Method != http.MethodPost || name == "stats":
		w.Header().Set("Allow", map[bool]string{true: http.MethodGet, false: http.MethodPost}[name == "stats"])
		status, err = http.StatusMethodNotAllowed, errors.New("the method is not allowed")
	default:
		if err = s.change(name, r.Body); errors.Is(err, errAbsent) {
			status = http.StatusNotFound
		} else if err != nil {
			status = http.StatusBadRequest
		}
	}
	if err != nil {
		out = map[string]any{"success": false, "error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(server.Encode(out)) // the client may have left
}

// change runs the control endpoint with a name.
func (s *Server) change(name string, body io.Reader) error {
	body = io.LimitReader(body, maxControl)
	switch name {
	case "reset":
		if s.venue != nil {
			s.venue.Reset()
		}
		s.Faults.Reset()
		return nil
	case "faults":
		var in struct {
			Faults []faults.Fault `json:"faults"`
		}
		if err := readObject(body, &in); err != nil {
			return err
		}
		return s.Faults.Set(in.Faults)
	case "restart":
		return s.restart(body)
	}
	change := map[string]func(io.Reader) error{"price": s.setPrice, "trade": s.trade, "market": s.setMarket, "step": s.step}[name]
	if change == nil || s.venue == nil {
		return errAbsent
	}
	return change(body)
}

func (s *Server) restart(body io.Reader) error {
	var in struct {
		Code int `json:"code"`
	}
	if err := readObject(body, &in); err != nil {
		return err
	}
	if err := faults.CheckCode(in.Code); err != nil {
		return err
	}
	if s.venue != nil {
		s.venue.Engine().Restart(in.Code)
	}
	if in.Code != 0 {
		s.Faults.CloseStreams(in.Code)
	}
	return nil
}

// readObject decodes one JSON object. It refuses unknown fields and any data after the object.
func readObject(document io.Reader, into any) error {
	d := json.NewDecoder(document)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON object")
	}
	return nil
}

func (s *Server) setPrice(body io.Reader) error {
	var in struct {
		TokenID string      `json:"tokenId"`
		Price   json.Number `json:"price"`
	}
	if err := readObject(body, &in); err != nil {
		return err
	}
	price, ok := demo.ParsePrice(in.Price.String())
	if !ok {
		return demo.ErrPrice
	}
	return s.venue.Engine().SetPrice(s.venue.DemoID(in.TokenID), price)
}

func (s *Server) trade(body io.Reader) error {
	var in struct {
		Address string      `json:"address"`
		TokenID string      `json:"tokenId"`
		Side    demo.Side   `json:"side"`
		Size    json.Number `json:"size"`
	}
	if err := readObject(body, &in); err != nil {
		return err
	}
	if in.Size == "" && in.Side == demo.Sell {
		return s.venue.Engine().Trade(in.Address, s.venue.DemoID(in.TokenID), demo.Sell, demo.WholePosition)
	}
	size, ok := demo.ParseSize(in.Size.String())
	if !ok || size < 0 {
		return demo.ErrSize
	}
	return s.venue.Engine().Trade(in.Address, s.venue.DemoID(in.TokenID), in.Side, size)
}

func (s *Server) step(body io.Reader) error {
	in := struct {
		Steps int `json:"steps"`
	}{1}
	if err := readObject(body, &in); err != nil {
		return err
	}
	if in.Steps < 1 || in.Steps > maxSteps {
		return errors.New("steps is a number from 1 to " + strconv.Itoa(maxSteps))
	}
	for range in.Steps {
		s.venue.Engine().Step()
	}
	return nil
}

func (s *Server) setMarket(body io.Reader) error {
	var in struct {
		MarketID       string      `json:"marketId"`
		Status         string      `json:"status"`
		WinningTokenID string      `json:"winningTokenId"`
		Description    string      `json:"description"`
		TickSize       json.Number `json:"tickSize"`
	}
	if err := readObject(body, &in); err != nil {
		return err
	}
	given := 0
	for _, text := range []string{in.Status, in.WinningTokenID, in.Description, in.TickSize.String()} {
		if text != "" {
			given++
		}
	}
	engine, id := s.venue.Engine(), s.venue.DemoID(in.MarketID)
	switch {
	case given != 1:
		return errors.New("exactly one of status, winningTokenId, description and tickSize is needed")
	case in.Status != "":
		return engine.SetStatus(id, in.Status)
	case in.WinningTokenID != "":
		return engine.Resolve(id, s.venue.DemoID(in.WinningTokenID))
	case in.Description != "":
		return engine.Reword(id, in.Description)
	}
	tick, ok := demo.ParsePrice(in.TickSize.String())
	if !ok {
		return demo.ErrTickSize
	}
	return engine.SetTickSize(id, tick)
}
