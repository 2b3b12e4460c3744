package generic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/tests/tool"
)

// scripted is a transport that gets each response from answer. It opens no connections, so it works in a synctest bubble.
type scripted struct {
	answer func(r *http.Request) (*http.Response, error)

	mu      sync.Mutex
	asked   []string
	askedAt []time.Time
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]+"?"+r.URL.RawQuery)
	s.askedAt = append(s.askedAt, time.Now())
	s.mu.Unlock()
	return s.answer(r)
}

func (s *scripted) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// client returns a client without retries. Its Config.Rand always returns the number random. The functions in edit may change the
// configuration.
func (s *scripted) client(t testing.TB, random float64, edit ...func(*Config)) *Client {
	t.Helper()
	script := func(cfg *Config) { cfg.Transport, cfg.Rand = s, func() float64 { return random } }
	return newClient(t, "http://venue.invalid", append([]func(*Config){script}, edit...)...)
}

// respond returns a function that returns a response. header contains pairs of a name and a value. If body is empty, the body of
// the response reports an error.
func respond(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	if body == "" {
		body = `{"success":false,"error":"the reason","code":"WHATEVER"}`
	}
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

// failWith returns a function that returns err and no response.
func failWith(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hangUntilDone returns no response. It waits until the context of the request ends, and returns the error of the context.
func hangUntilDone(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// withoutBooks returns a function that responds to requests for order books with an error, and to other requests like answer.
func withoutBooks(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == paths[upstream.EndpointBook] {
			return respond(503, "", "Retry-After", "60")(r)
		}
		return answer(r)
	}
}

// validResponse returns a valid response to a request of any endpoint.
func validResponse(r *http.Request) (*http.Response, error) {
	const m = `{"marketId":"M1","slug":"will-it-rain","question":"?","outcomes":[{"tokenId":"101","outcome":"YES"}]}`
	body, ok := map[string]string{
		"prices": `{"tokenId":"101","price":0.5}`, "spreads": `{"tokenId":"101","spread":0.1}`, "orderbook": `{"bids":[],"asks":[]}`,
		"price-history": `{"history":[]}`, "market-search": `{"markets":[]}`, "market-details": m, "balance": `{"cashBalance":1}`,
		"positions": `{"positions":[]}`, "orders": `{"orders":[]}`, "trades": `{"trades":[]}`, "history": `{"history":[]}`,
	}[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	if !ok {
		return nil, fmt.Errorf("no answer for %s", r.URL.Path)
	}
	if id := r.URL.Query().Get("tokenId"); id != "" {
		body = strings.ReplaceAll(body, `"101"`, `"`+id+`"`)
	}
	if ids := r.URL.Query().Get("tokenIds"); ids != "" && strings.HasSuffix(r.URL.Path, "/prices") {
		var rows []string
		for id := range strings.SplitSeq(ids, ",") {
			rows = append(rows, `{"tokenId":"`+id+`","price":0.5}`)
		}
		body = "[" + strings.Join(rows, ",") + "]"
	}
	return respond(200, body)(r)
}

// permit is a upstream.Permit that counts the calls that it admits. If refuseFrom is not 0, permit refuses call number refuseFrom and
// all later calls. The first call is number 1.
type permit struct {
	mu           sync.Mutex
	admitted     int
	refuseFrom   int
	observed     []string
	throttledFor []time.Duration
}

var errBudget = market.Errorf(market.CodeRateLimited, "the budget is used up")

func (p *permit) AdmitCall(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuseFrom > 0 && p.admitted+1 >= p.refuseFrom {
		return errBudget
	}
	p.admitted++
	return nil
}

func (p *permit) Answered(a upstream.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.Limit >= 0 || a.Remaining >= 0 || !a.Reset.IsZero() {
		p.observed = append(p.observed, fmt.Sprint(a.Limit, " ", a.Remaining, " ", tool.Text(a.Reset.UTC())))
	}
	if a.Refused {
		p.throttledFor = append(p.throttledFor, a.RetryAfter)
	}
}

// retryAfterOf returns the code and RetryAfter of an error as text.
func retryAfterOf(err error) string {
	var e *market.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	return fmt.Sprint(e.Code, " ", e.RetryAfter)
}
