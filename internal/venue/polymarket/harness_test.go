package polymarket_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/polymarket"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// stub is a transport that records the calls. The function in answers for the method and path of a call returns the response.
type stub struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[string]func(q url.Values, body []byte) answer
	calls   []string
	drift   []string
	hosts   map[string]bool
}

type answer struct {
	status int
	body   string
	header http.Header
}

// ok returns an answer with status 200 and the value v as JSON.
func ok(v any) answer {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return answer{status: http.StatusOK, body: string(b)}
}

// Call implements rest.Observer.
func (s *stub) Call(upstream.HTTPCall, error) {}

// Drift implements rest.Observer.
func (s *stub) Drift(endpoint, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drift = append(s.drift, endpoint+": "+what)
}

// RoundTrip implements http.RoundTripper.
func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	if len(body) > 0 && r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s has the content type %q", r.URL.Path, r.Header.Get("Content-Type"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if q.Has("offset") {
		s.t.Errorf("%s has an offset", r.URL)
	}
	call := r.Method + " " + r.URL.Path
	s.calls = append(s.calls, strings.TrimSuffix(call+" "+r.URL.RawQuery, " "))
	s.hosts[r.URL.Host] = true
	a := answer{status: http.StatusNotFound, body: `{"error":"no such path"}`}
	if f := s.answers[call]; f != nil {
		a = f(q, body)
	}
	if a.header == nil {
		a.header = http.Header{"Content-Type": {"application/json"}}
	}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// count returns how often the driver made a call. call is the method and the path, such as "GET /v2/trades".
func (s *stub) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c == call || strings.HasPrefix(c, call+" ") {
			n++
		}
	}
	return n
}

type answers map[string]func(q url.Values, body []byte) answer

// open returns a driver, its transport and its clock.
func open(t *testing.T, table answers) (*polymarket.Driver, *stub, *tool.Clock) {
	t.Helper()
	s, c := &stub{t: t, answers: table, hosts: map[string]bool{}}, tool.NewClock(time.Date(2030, 4, 1, 0, 0, 0, 0, time.UTC))
	d, err := polymarket.New(rest.Config{Transport: s, Observer: s, Clock: c, Rand: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return d, s, c
}

// tokensOf returns the token ids in the body of a request.
func tokensOf(body []byte) (ids []string) {
	var list []struct {
		ID string `json:"token_id"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		panic(err)
	}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

// check fails the test if got and want have different texts.
func check(t *testing.T, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("\n got %s\nwant %s", g, w)
	}
}

// gammaMarket returns a market in the form of the Gamma API. more contains further members, which may replace the default members.
func gammaMarket(n int, closed bool, more map[string]any) map[string]any {
	m := map[string]any{
		"conditionId": fmt.Sprintf("0xa%d", n), "question": fmt.Sprint("Question ", n), "slug": fmt.Sprint("slug-", n), "description": "d",
		"outcomes": `["Yes","No"]`, "outcomePrices": `["0.5","0.5"]`, "clobTokenIds": fmt.Sprintf(`["%d","%d"]`, 2*n, 2*n+1), "active": true, "closed": closed,
		"volume24hr": 1000 - n, "volume": fmt.Sprint(1000 - n),
	}
	maps.Copy(m, more)
	return m
}

// keyset returns the answer function of /markets/keyset for the given open and closed markets.
func keyset(open, closed []map[string]any) func(q url.Values, _ []byte) answer {
	return func(q url.Values, _ []byte) answer {
		list := open
		if q.Get("closed") == "true" {
			list = closed
		}
		var rows []map[string]any
		for _, m := range list {
			var tokens []string
			_ = json.Unmarshal([]byte(m["clobTokenIds"].(string)), &tokens)
			if ids := q["condition_ids"]; len(ids) > 0 && !slices.Contains(ids, m["conditionId"].(string)) {
				continue
			}
			if ids := q["slug"]; len(ids) > 0 && !slices.Contains(ids, m["slug"].(string)) {
				continue
			}
			if ids := q["clob_token_ids"]; len(ids) > 0 && !slices.ContainsFunc(tokens, func(id string) bool { return slices.Contains(ids, id) }) {
				continue
			}
			rows = append(rows, m)
		}
		from, _ := strconv.Atoi(q.Get("after_cursor"))
		limit, _ := strconv.Atoi(q.Get("limit"))
		out := map[string]any{"markets": rows[min(from, len(rows)):min(from+limit, len(rows))]}
		if from+limit < len(rows) {
			out["next_cursor"] = strconv.Itoa(from + limit)
		}
		return ok(out)
	}
}

// ids returns the ids of markets, without the prefix 0xa.
func ids(markets []*market.Market) (out []string) {
	for _, m := range markets {
		out = append(out, strings.TrimPrefix(m.MarketID, "0xa"))
	}
	return out
}
