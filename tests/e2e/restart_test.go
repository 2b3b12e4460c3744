//go:build unix

package e2e

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/ratelimit/spent"
)

// strictVenue accepts exactly a hundred calls from an address in any minute. The venue handles each call after callDelay, even if
// the calling process has ended by then.
type strictVenue struct {
	*httptest.Server
	venue *demo.Venue
	// sent counts all calls to the venue. arrived counts the calls for which the delay has passed.
	arrived, sent atomic.Int64
	// requestedBooks holds the token ids of the books that clients have requested.
	requestedBooks sync.Map
	// books are the ids of all tokens of open markets.
	books []string
}

// callDelay is the delay of a call to a strictVenue.
const callDelay = 40 * time.Millisecond

// newStrictVenue starts a venue. If reportsLimit is true, the responses say how many calls remain.
func newStrictVenue(t *testing.T, reportsLimit bool) *strictVenue {
	v := &strictVenue{venue: demo.New(demo.Config{Markets: 300, PublicPerMinute: 100})}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.requestedBooks.Store(r.URL.Query().Get("tokenId"), true)
		v.sent.Add(1)
		time.Sleep(callDelay)
		v.arrived.Add(1)
		if !reportsLimit {
			w = withoutLimit{w}
		}
		v.venue.ServeHTTP(w, r)
	}))
	for _, token := range v.venue.Tokens() {
		if token.Status == "OPEN" {
			v.books = append(v.books, token.TokenID)
		}
	}
	t.Cleanup(func() {
		v.venue.Close()
		v.Close()
	})
	return v
}

// withoutLimit removes the rate limit headers from a response.
type withoutLimit struct{ http.ResponseWriter }

func (u withoutLimit) WriteHeader(status int) {
	for name := range u.Header() {
		if strings.HasPrefix(name, "X-Ratelimit-") {
			u.Header().Del(name)
		}
	}
	u.ResponseWriter.WriteHeader(status)
}

// startProgram starts a service that uses the venue.
func (v *strictVenue) startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	return runProgram(t, append([]string{"--venue-url=" + v.URL, "--request-timeout=10s", "--venue-retries=0"}, args...)...)
}

// wantWithinTheLimit checks that the venue refused no call. The parameter total is the number of calls that must have reached the
// venue. For each book in burst that was never requested, one call may be missing: a killed process may have recorded the call but
// not sent it.
func (v *strictVenue) wantWithinTheLimit(t *testing.T, total int64, burst []string) {
	t.Helper()
	eventually(t, "all calls have reached the venue", func() bool { return v.arrived.Load() == v.sent.Load() })
	least := total
	for _, id := range burst {
		if _, requested := v.requestedBooks.Load(id); !requested {
			least--
		}
	}
	n, refused := v.arrived.Load(), v.venue.Stats().Statuses["429"]
	if refused != 0 || n > total || n < least {
		t.Errorf("the venue received %d calls and refused %d calls; want %d to %d calls and none refused", n, refused, least, total)
	}
	t.Logf("the venue received %d calls, want %d to %d", n, least, total)
}

const bookOf = `query ($id: String!) { token(tokenId: $id) { orderbook(depth: 1) { sequence freshness { stale } } } }`

// book queries a book. The code is "" if the response has no error, "gone" if there was no response, and the code of the first
// error in all other cases.
func (p *program) book(id string) (code string, stale bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out struct {
		Data   any          `json:"data"`
		Errors []graphError `json:"errors"`
	}
	if err := p.post(ctx, bookOf, vars{"id": id}, anonymous, &out); err != nil {
		return "gone", false
	}
	for _, e := range out.Errors {
		return e.Extensions.Code, false
	}
	return "", at(out.Data, "token.orderbook.freshness.stale") == true
}

// burst queries books at the same time, each from a different client address. The returned function waits for all responses and
// counts them by code.
func (p *program) burst(ids []string) func() map[string]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[string]int{}
	for _, id := range ids {
		all.Go(func() {
			code, _ := p.book(id)
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
		})
	}
	return func() map[string]int { all.Wait(); return codes }
}

// kill sends SIGKILL to the program and waits for its end.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}

// stateOf returns a state directory with a record that shows no calls to v in the last minute.
func stateOf(t *testing.T, v *strictVenue) string {
	t.Helper()
	dir := t.TempDir()
	r := spent.New(spent.Config{Dir: dir, Venue: v.URL, Limit: 100, Clock: market.SystemClock{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	r.Open(func(ratelimit.Allowance, []ratelimit.Spent, time.Time) {})
	r.Close()
	return dir
}

// wantStale waits until a book that was read before is marked stale. It fails the test if a query for the book fails.
func (p *program) wantStale(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the book is no longer fresh", func() bool {
		code, stale := p.book(id)
		if code != "" {
			t.Fatalf("a query for a cached book got the error %s", code)
		}
		return stale
	})
}

// TestKilledUnderLoad checks that the venue refuses no call when the service is killed during a burst and restarted under load.
// Queries for a cached book must succeed.
func TestKilledUnderLoad(t *testing.T) {
	for name, test := range map[string]struct {
		record, reportsLimit bool
		// total is the number of calls that the two processes of the service must make together.
		total int64
	}{
		"with a record":                        {record: true, total: 95},
		"with a venue that reports its limit":  {reportsLimit: true, total: 95},
		"with both":                            {record: true, reportsLimit: true, total: 95},
		"without a record or a reported limit": {total: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newStrictVenue(t, test.reportsLimit)
			dir := "off"
			if test.record {
				dir = stateOf(t, v)
			}
			p := v.startProgram(t, "--state-dir="+dir)
			if test.reportsLimit {
				p.book(v.books[0]) // the response reports the venue's limit
			}
			for i := range 3 {
				p.burst(v.books[10*i : 10*i+10])()
			}
			var lastBurst []string
			if test.total > 10 {
				lastBurst = v.books[30:40]
				p.burst(lastBurst)
				eventually(t, "some calls of the burst have reached the venue", func() bool { return v.sent.Load() >= 33 })
			}
			p.kill(t)

			p = v.startProgram(t, "--state-dir="+dir)
			var cachedBook string
			eventually(t, "a book is read", func() bool {
				for _, id := range v.books[100:110] {
					if code, _ := p.book(id); code == "" {
						cachedBook = id
						return true
					}
				}
				return false
			})
			codes := map[string]int{}
			for i := range 8 {
				for code, n := range p.burst(v.books[110+10*i : 120+10*i])() {
					codes[code] += n
				}
			}
			if codes["RATE_LIMITED"] == 0 || codes["gone"] != 0 {
				t.Errorf("after the restart, the queries got the codes %v; want RATE_LIMITED, and a response to each query", codes)
			}
			p.wantStale(t, cachedBook)
			v.wantWithinTheLimit(t, test.total, lastBurst)
		})
	}
}

// TestRestartAfterAServiceWithoutARecord checks that a service without a record of calls makes only five calls: the margin,
// which other processes leave unused. Another process has just made 95 of the 100 calls that the venue accepts in a minute.
func TestRestartAfterAServiceWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, reportsLimit := range map[string]bool{"venue that reports no limit": false, "venue that reports its limit": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newStrictVenue(t, reportsLimit)
			var before sync.WaitGroup
			for range 95 {
				before.Go(func() {
					resp, err := http.Get(v.URL + "/api/exchange/orderbook?tokenId=" + v.books[0])
					if err != nil {
						t.Error(err)
						return
					}
					_ = resp.Body.Close()
				})
			}
			before.Wait()
			dir := "--state-dir=" + t.TempDir()
			p := v.startProgram(t, dir)
			codes := p.burst(v.books[:30])()
			if codes[""] != 5 || codes["RATE_LIMITED"] != 25 {
				t.Errorf("30 queries got the codes %v; want 5 responses without errors and 25 refusals", codes)
			}
			p.kill(t)
			// After a restart, the service may not use the margin again within the same minute.
			p = v.startProgram(t, dir)
			if codes := p.burst(v.books[:30])(); codes["RATE_LIMITED"] != 30 {
				t.Errorf("after another restart, 30 queries got the codes %v; want 30 refusals", codes)
			}
			v.wantWithinTheLimit(t, 100, nil)
		})
	}
}

// TestRollingRestartWithinTheLimit checks that the venue refuses no call when a new service replaces an old service under load.
// While the old service runs, the new service may make only five calls. After that, the new service must use all remaining calls of
// the rate limit.
func TestRollingRestartWithinTheLimit(t *testing.T) {
	t.Parallel() // the test mostly waits
	for name, killed := range map[string]bool{"told to stop": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newStrictVenue(t, false)
			dir := "--state-dir=" + stateOf(t, v)
			oldService := v.startProgram(t, dir, "--drain-delay=500ms")
			for i := range 4 {
				if codes := oldService.burst(v.books[10*i : 10*i+10])(); codes[""] != 10 {
					t.Fatalf("10 queries to the old service got the codes %v, want no errors", codes)
				}
			}
			newService := v.startProgram(t, dir)
			fromNew := newService.burst(v.books[100:110])
			fromOld := oldService.burst(v.books[40:60])
			if codes := fromNew(); codes[""] != 5 || codes["RATE_LIMITED"] != 5 {
				t.Errorf("while the old service ran, 10 queries to the new service got the codes %v; want 5 responses without errors and 5 refusals", codes)
			}
			if codes := fromOld(); codes[""] != 20 {
				t.Errorf("while the new service ran, 20 queries to the old service got the codes %v, want no errors", codes)
			}
			var cachedBook string
			for _, id := range v.books[100:110] {
				if code, _ := newService.book(id); code == "" {
					cachedBook = id
				}
			}
			newService.wantStale(t, cachedBook)
			lastBurst := v.books[60:70]
			if killed {
				oldService.burst(lastBurst)
				eventually(t, "some calls of the burst have reached the venue", func() bool { return v.sent.Load() >= 67 })
				oldService.kill(t)
			} else {
				oldService.terminate(t)
				oldService.burst(lastBurst)
				oldService.wantExit(t, 0)
			}
			eventually(t, "the new service may use the remaining calls", func() bool {
				code, _ := newService.book(v.books[150])
				return code == ""
			})
			codes := map[string]int{}
			for i := range 4 {
				for code, n := range newService.burst(v.books[200+10*i : 210+10*i])() {
					codes[code] += n
				}
			}
			if codes[""] < 10 || codes["RATE_LIMITED"] == 0 {
				t.Errorf("after the end of the old service, 40 queries got the codes %v; want at least 10 responses without errors, and RATE_LIMITED", codes)
			}
			newService.wantStale(t, cachedBook)
			v.wantWithinTheLimit(t, 95, lastBurst)
		})
	}
}
