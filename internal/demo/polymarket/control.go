package polymarket

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"oddsgraph/internal/demo"
)

// Behaviour has the oddities and faults of the simulator. They can change while the simulator serves.
type Behaviour struct {
	// CrossingBursts sends a separate message for each level that a marketable order changes. Between these messages the book can
	// be crossed.
	CrossingBursts bool `json:"crossingBursts"`
	// LostFrames is the percentage of frames that each client loses. Answers to a subscription are never lost.
	LostFrames float64 `json:"lostFrames"`
	// AssetLimit is the maximum number of tokens of a socket. The stream silently ignores subscriptions to more tokens. 0 means no
	// limit.
	AssetLimit int `json:"assetLimit"`
	// ResolutionByPolling sends no market_resolved, so that clients must poll for results.
	ResolutionByPolling bool `json:"resolutionByPolling"`
	// LeaveOutClosed omits closed markets from answers to requests without closed=true.
	LeaveOutClosed bool `json:"leaveOutClosed"`
	// RefuseOffset refuses requests with an offset at keyset endpoints. If it is false, these endpoints ignore the offset.
	RefuseOffset bool `json:"refuseOffset"`
	// RepeatedCursor sends the cursor of the last page of a keyset list with this page. If it is false, the last page has no cursor.
	RepeatedCursor bool `json:"repeatedCursor"`
	// IgnoreFilters ignores filters by id, slug or token.
	IgnoreFilters bool `json:"ignoreFilters"`
	// ShuffledIDs answers requests for several ids in another order.
	ShuffledIDs bool `json:"shuffledIds"`
	// DefaultHalf reports a last trade with the price 0.5 and the side "" for a token that has never traded. If it is false,
	// answers omit this token.
	DefaultHalf bool `json:"defaultHalf"`
	// SwapPriceSides lets /prices answer the best ask for BUY and the best bid for SELL, instead of the reverse.
	SwapPriceSides bool `json:"swapPriceSides"`
	// EmptySide is the side that each book loses with its next change: bids or asks. Empty means no side.
	EmptySide string `json:"emptySide"`
	// RefuseAll answers every REST request with status 429 and an HTML page.
	RefuseAll bool `json:"refuseAll"`
	// DelayOverLimit delays requests beyond the limit of their path. If it is false, the simulator refuses such requests as with
	// RefuseAll.
	DelayOverLimit bool `json:"delayOverLimit"`
	// PerTenSeconds replaces the documented limits of all paths. 0 keeps the documented limits.
	PerTenSeconds int `json:"perTenSeconds"`
}

// Documented returns the behaviour that Polymarket documents or that its users report.
func Documented() Behaviour {
	return Behaviour{
		CrossingBursts: true, AssetLimit: 500, LeaveOutClosed: true, RefuseOffset: true, RepeatedCursor: true, ShuffledIDs: true, DefaultHalf: true,
		DelayOverLimit: true,
	}
}

// Behaviour returns the present behaviour.
func (v *Venue) Behaviour() Behaviour {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.behaviour
}

// SetBehaviour replaces the behaviour. It refuses values that are out of range.
func (v *Venue) SetBehaviour(b Behaviour) error {
	switch {
	case !(b.LostFrames >= 0 && b.LostFrames <= 100):
		return errors.New("polymarket: lostFrames is not a percentage")
	case b.AssetLimit < 0 || b.PerTenSeconds < 0:
		return errors.New("polymarket: a limit is negative")
	case b.EmptySide != "" && b.EmptySide != "bids" && b.EmptySide != "asks":
		return errors.New("polymarket: emptySide is not bids, asks or empty")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.behaviour = b
	return nil
}

// Stats counts requests since the simulator opened or was reset. The maps Requests and Keys are indexed by path patterns such as
// "POST /books". The map Statuses is indexed by status texts such as "OK".
type Stats struct {
	Requests map[string]int64 `json:"requests"`
	// Keys counts the identifiers in the requests. A request without a list of identifiers counts as 1.
	Keys     map[string]int64 `json:"keys"`
	Statuses map[string]int64 `json:"statuses"`
	Stream   StreamStats      `json:"stream"`
}

// StreamStats counts open sockets, sockets opened so far, and subscriptions. A subscription is a pair of an open socket and a
// token.
type StreamStats struct {
	Connections   int64 `json:"connections"`
	Opened        int64 `json:"opened"`
	Subscriptions int64 `json:"subscriptions"`
}

// Stats returns the counts.
func (v *Venue) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Stats{Requests: maps.Clone(v.requests), Keys: maps.Clone(v.keys), Statuses: maps.Clone(v.statuses)}
	s.Stream = StreamStats{Connections: int64(len(v.conns)), Opened: v.openedSockets}
	for c := range v.conns {
		s.Stream.Subscriptions += int64(len(c.assets))
	}
	return s
}

func (v *Venue) count(pattern string, keys, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests[pattern]++
	v.keys[pattern] += int64(keys)
	v.statuses[http.StatusText(status)]++
}

// Reset zeroes the counts and restores the documented behaviour. Frozen streams stay frozen.
func (v *Venue) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.requests)
	clear(v.keys)
	clear(v.statuses)
	v.openedSockets, v.behaviour = 0, Documented()
}

// controlPrefix is the path prefix of control requests. The simulator replaces its own identifiers in a control request by those
// of the demo venue, and passes the request to the demo venue. It answers only the following control requests itself:
//
//	GET  /__control/stats   the [Stats]
//	POST /__control/reset   see [Venue.Reset]
//	GET  /__control/faults  the [Behaviour]
//	POST /__control/faults  members of the Behaviour to change, and "freeze":true or "disconnect":true for the open streams
const controlPrefix = "/__control/"

// maxControl bounds the body of a control request.
const maxControl = 1 << 20

var crossOrigin = http.NewCrossOriginProtection()

func (v *Venue) serveControl(w http.ResponseWriter, r *http.Request) {
	var out any = object{"success": true}
	err := crossOrigin.Check(r)
	if err == nil {
		switch r.Method + " " + strings.TrimPrefix(r.URL.Path, controlPrefix) {
		case "GET stats":
			out = v.Stats()
		case "GET faults":
			out = v.Behaviour()
		case "POST reset":
			v.Reset()
		case "POST faults":
			err = v.controlFaults(r.Body)
		default:
			if err = v.translate(r); err == nil {
				v.engine.ServeHTTP(w, r)
				return
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = object{"success": false, "error": err.Error(), "code": "BAD_REQUEST"}
	}
	_, _ = w.Write(demo.Encode(out))
}

// controlFaults changes the behaviour, and on request freezes or ends the open streams.
func (v *Venue) controlFaults(body io.Reader) error {
	in := struct {
		Behaviour
		Freeze     bool `json:"freeze"`
		Disconnect bool `json:"disconnect"`
	}{Behaviour: v.Behaviour()}
	d := json.NewDecoder(io.LimitReader(body, maxControl))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	if err := v.SetBehaviour(in.Behaviour); err != nil {
		return err
	}
	if in.Freeze {
		v.Freeze()
	}
	if in.Disconnect {
		v.Disconnect()
	}
	return nil
}

func (v *Venue) translate(r *http.Request) error {
	in := map[string]json.RawMessage{}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(io.LimitReader(r.Body, maxControl)).Decode(&in); err != nil {
			return err
		}
	}
	for name, raw := range in {
		var id string
		if json.Unmarshal(raw, &id) != nil {
			continue
		}
		m := v.byCondition[id]
		if m == nil {
			m = v.byCondition[id+"00"] // Gamma's form of a condition id of protocol V2
		}
		switch {
		case name == "marketId" && m != nil:
			in[name] = demo.Encode(m.demoMarket)
		case name == "tokenId" || name == "winningTokenId":
			demoID, ok := v.DemoTokenID(id)
			if !ok && v.tokens[id].market != nil {
				return errors.New("polymarket: this action needs the first token of the market")
			}
			if ok {
				in[name] = demo.Encode(demoID)
			}
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(demo.Encode(in)))
	return nil
}

// window is the length of time over which a limiter counts requests.
const window = 10 * time.Second

type limiter struct {
	mu       sync.Mutex
	admitted map[string][]time.Time // by path: times at which the limiter admits the last requests, oldest first
}

// admit returns the time that a request must wait, so that no more than limit requests are answered in a window. If delay is true
// or the result is 0, admit admits the request and records the time.
func (l *limiter) admit(path string, limit int, now time.Time, delay bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted == nil {
		l.admitted = map[string][]time.Time{}
	}
	times := l.admitted[path]
	for len(times) > 0 && now.Sub(times[0]) >= window {
		times = times[1:]
	}
	at := now
	if len(times) >= limit {
		at = times[len(times)-limit].Add(window)
	}
	if delay || at.Equal(now) {
		times = append(times, at)
	}
	l.admitted[path] = times
	return at.Sub(now)
}

var _ demo.Watcher = (*Venue)(nil)
