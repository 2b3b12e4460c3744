package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// frontendLoad runs clients that poll like frontends: boards with 50 prices, and market pages with two books. Each board and each
// page is a separate client that polls once a second.
type frontendLoad struct {
	*checkedLoad
	boards, pages int
	markets       [][2]string // the ids of the YES and NO tokens of the markets on the pages
	// settled becomes true when the last response of every client had only values from the venue's stream. After that, all
	// responses must have only values from the stream.
	settled atomic.Bool
	// maxAge is the maximum age of a value that is marked stale.
	maxAge time.Duration
	// last maps a client to true if the client's last response had no error and only fresh values from the stream.
	last map[int]bool
}

// answerDelay is added to the maximum age of a stale value, because a response takes time to reach the client.
const answerDelay = 15 * time.Second

// boardTokens is the number of tokens that all boards together show.
const boardTokens = 500

const (
	boardQuery = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price timestamp freshness { stale source receivedAt } } }`
	pageQuery  = `query ($yes: String!, $no: String!) {
		yes: token(tokenId: $yes) { market { question } orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source receivedAt } } }
		no: token(tokenId: $no) { orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source receivedAt } } } }`
)

// newFrontendLoad returns a load whose clients query the tokens of w. The boards show the first boardTokens tokens. The pages show
// markets that are on no board.
func newFrontendLoad(t testing.TB, s *service, w *recordedVenue, boards, pages int) *frontendLoad {
	t.Helper()
	a := &frontendLoad{checkedLoad: newCheckedLoad(s, w), boards: boards, pages: pages, maxAge: 5*time.Minute + answerDelay, last: make(map[int]bool)}
	tokensOf := make(map[string][]string)
	for _, token := range w.venue.Tokens() {
		if ids := append(tokensOf[token.MarketID], token.TokenID); slices.Contains(w.tokens[boardTokens:], token.TokenID) && len(a.markets) < pages {
			if tokensOf[token.MarketID] = ids; len(ids) == 2 {
				a.markets = append(a.markets, [2]string(ids))
			}
		}
	}
	if len(a.markets) < pages {
		t.Fatalf("only %d recorded markets are on no board", len(a.markets))
	}
	return a
}

func client(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, byte(n >> 8), byte(n)}) }

// runSettled runs the load until it has settled, and then for the duration d. If the load does not settle within limit, the test
// fails. When the load settles, runSettled calls onSettled, which may be nil.
func (a *frontendLoad) runSettled(t testing.TB, limit, d time.Duration, onSettled func()) {
	t.Helper()
	began := time.Now()
	a.run(func() time.Time { return began.Add(limit) }, func() time.Time {
		t.Logf("after %v, all values came from the stream", time.Since(began).Round(time.Millisecond))
		if onSettled != nil {
			onSettled()
		}
		return time.Now().Add(d)
	})
	if !a.settled.Load() {
		t.Errorf("after %v, not all values come from the stream", limit)
	}
}

// run runs the load until the time that endTime returns. If onSettled is not nil, run calls it when the load settles. The load then
// ends at the time that onSettled returns.
func (a *frontendLoad) run(endTime func() time.Time, onSettled func() time.Time) {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	var all sync.WaitGroup
	startClient := func(n int, query string, variables vars, take func(phase string, data any) (streamed bool)) {
		all.Go(func() {
			select {
			case <-time.After(time.Duration(rand.N(1000)) * time.Millisecond):
			case <-ctx.Done():
			}
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for ctx.Err() == nil {
				var out graphResult
				phase := ""
				if onSettled != nil && !a.settled.Load() {
					phase = "settling: "
				}
				if err := a.postFrom(ctx, client(n), query, variables, anonymous, &out); err != nil {
					if ctx.Err() == nil {
						a.addError(fmt.Errorf("a query got no response: %w", err))
					}
					return
				}
				for _, e := range out.Errors {
					a.count(phase + "error " + e.Extensions.Code)
					if e.Extensions.Code == "RATE_LIMITED" && e.Extensions.RetryAfterMs <= 0 {
						a.addError(fmt.Errorf("%s without a retry time", e))
					}
				}
				a.setStreamed(n, take(phase, out.Data) && len(out.Errors) == 0)
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	for i := range a.boards {
		ids := make([]string, 50)
		for j := range ids {
			ids[j] = a.recorded.tokens[(i*50+j)%boardTokens]
		}
		startClient(i, boardQuery, vars{"ids": ids}, func(phase string, data any) bool {
			streamed := true
			for _, p := range list(data, "tokenPrices") {
				if p != nil {
					a.addError(a.recorded.checkPrice(p))
					streamed = a.checkAge(phase, "price", p) && streamed
				}
			}
			return streamed
		})
	}
	for i, ids := range a.markets {
		startClient(a.boards+i, pageQuery, vars{"yes": ids[0], "no": ids[1]}, func(phase string, data any) bool {
			streamed := true
			for j, side := range []string{"yes", "no"} {
				if b := at(data, side+".orderbook"); b != nil {
					a.addError(a.recorded.checkBook(ids[j], b))
					streamed = a.checkAge(phase, "book", b) && streamed
				}
			}
			return streamed
		})
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := endTime(); time.Now().Before(end); <-tick.C {
		a.recorded.step()
		if onSettled != nil && !a.settled.Load() && a.allStreamed() {
			a.settled.Store(true)
			end = onSettled()
		}
	}
	cancel()
	all.Wait()
}

// setStreamed records whether a client's last response had only fresh values from the stream.
func (a *frontendLoad) setStreamed(client int, streamed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[client] = streamed
}

// allStreamed reports whether the last response of each client had only fresh values from the stream.
func (a *frontendLoad) allStreamed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, streamed := range a.last {
		if streamed {
			n++
		}
	}
	return n == a.boards+len(a.markets)
}

// checkAge counts a price or a book by freshness and source. If the value is stale, checkAge checks its age. It reports whether the
// value is fresh and comes from the stream.
func (a *frontendLoad) checkAge(phase, kind string, v any) (streamed bool) {
	stale, source := at(v, "freshness.stale") == true, text(v, "freshness.source")
	if !stale {
		a.count(phase + kind + " fresh " + source)
		return source == "STREAM"
	}
	a.count(phase + kind + " stale")
	received, _ := time.Parse(time.RFC3339Nano, text(v, "freshness.receivedAt"))
	if age := time.Since(received); age > a.maxAge {
		a.addError(fmt.Errorf("a stale %s is %v old, want at most %v", kind, age, a.maxAge))
	}
	return false
}

// usualLimits holds the usual rate limits of a recordedVenue: the number of calls per minute from each address, and with each key.
var usualLimits = [2]int{100, 300}

// wantNoRefusal checks that the venue has refused no call with status 429.
func (w *recordedVenue) wantNoRefusal(t testing.TB) {
	t.Helper()
	stats := w.venue.Stats()
	if n := stats.Statuses["429"]; n != 0 {
		t.Errorf("the venue refused %d calls: %v", n, stats.Requests)
	}
	t.Logf("the venue got the requests %v", stats.Requests)
}

// wantStreamed checks that the responses after settled became true had exactly the given kinds of values. It also checks that no
// response was wrong.
func (a *frontendLoad) wantStreamed(t testing.TB, want ...string) {
	t.Helper()
	seen := a.counts()
	t.Logf("the clients saw %v", seen)
	for what, n := range seen {
		if !strings.HasPrefix(what, "settling: ") && !slices.Contains(want, what) {
			t.Errorf("after all values came from the stream, clients saw %d times: %s", n, what)
		}
	}
	for _, what := range want {
		if seen[what] == 0 {
			t.Errorf("no client saw: %s", what)
		}
	}
	a.wantNothingWrong(t)
}

// wantNothingWrong fails the test if the load has recorded errors.
func (c *checkedLoad) wantNothingWrong(t testing.TB) {
	t.Helper()
	for what, n := range c.takeErrors() {
		t.Errorf("this error occurred %d times: %s", n, what)
	}
}

const (
	// soakEnv is the environment variable for the duration of a soak test.
	soakEnv = "SOAK"
	// soakShort is the default duration of a soak test. A test with a duration of soakLong or more runs with its full load.
	soakShort, soakLong = 8 * time.Second, time.Minute
)

func soakLength(t testing.TB) time.Duration {
	t.Helper()
	s := os.Getenv(soakEnv)
	if s == "" {
		return soakShort
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < soakShort {
		t.Fatalf("%s is %q; want a duration of at least %v", soakEnv, s, soakShort)
	}
	return d
}

// pollingSize returns the number of boards and the duration of a polling test.
func pollingSize(t testing.TB) (boards int, length time.Duration) {
	t.Helper()
	if soakLength(t) >= soakLong {
		return 300, 2 * time.Minute
	}
	return 20, 6 * time.Second
}

// TestPollingWithinTheBudget checks that prices and books soon come from the stream if clients poll them often. The venue accepts
// only 100 calls a minute, and must refuse no call.
func TestPollingWithinTheBudget(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel() // the test mostly waits
	w := newRecordedVenue(t, 1, 560, usualLimits)
	s := startLive(t, w.args()...)
	s.waitForStream(t)
	boards, length := pollingSize(t)
	within := 15 * time.Second
	if boards < 300 { // unlike the test with 300 boards, this test may run on a busy machine
		within = patience
	}
	a := newFrontendLoad(t, s, w, boards, 20)
	a.runSettled(t, within, length, nil)
	a.stopLoad()
	a.wantStreamed(t, "price fresh STREAM", "book fresh STREAM")
	w.wantNoRefusal(t)
}

// TestAttackersBesideHonestClients checks that honest clients get fresh values while one attacker sends random ids and another
// attacker sends invalid credentials. The attackers must not cause subscriptions to the stream, and must not exhaust the venue's
// rate limit.
func TestAttackersBesideHonestClients(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits
	w := newRecordedVenue(t, 1, 540, usualLimits)
	s := startLive(t, w.args()...)
	s.waitForStream(t)
	a := newFrontendLoad(t, s, w, 50, 0)
	attackers, stop := context.WithCancel(context.Background())
	var attacking sync.WaitGroup
	attempts := map[string]int{}
	var mu sync.Mutex
	attack := func(name string, n int, request func(r *rand.Rand) (string, vars, string)) {
		for i := range 4 { // four connections for each attacker
			attacking.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
				for attackers.Err() == nil {
					query, variables, credentials := request(r)
					var out graphResult
					err := s.postFrom(attackers, client(n), query, variables, credentials, &out)
					mu.Lock()
					attempts[name]++
					mu.Unlock()
					if err != nil && attackers.Err() == nil {
						a.addError(err)
					}
				}
			})
		}
	}
	a.runSettled(t, patience, 8*time.Second, func() {
		attack("random ids", 5000, func(r *rand.Rand) (string, vars, string) {
			ids := make([]string, 40)
			for i := range ids {
				ids[i] = fmt.Sprint("junk", r.Uint64())
			}
			return boardQuery, vars{"ids": ids}, anonymous
		})
		attack("junk credentials", 5001, func(r *rand.Rand) (string, vars, string) {
			return branchesQuery, nil, credentials(fmt.Sprint("junk", r.Uint64()))
		})
	})
	stop()
	attacking.Wait()
	a.stopLoad()
	a.wantStreamed(t, "price fresh STREAM")
	w.wantNoRefusal(t)
	stats := w.venue.Stats()
	for channel := range stats.Stream.Topics {
		if !slices.Contains([]string{"prices", "orderbook"}, channel) {
			t.Errorf("the service subscribed to the channel %s, want only prices and order books", channel)
		}
	}
	if n := stats.Stream.Topics["prices"]; n > 500 {
		t.Errorf("the service is subscribed to %d prices, want at most 500", n)
	}
	if n := stats.Stream.Subscribes["prices"]; n > 520 {
		t.Errorf("the service made %d subscriptions to prices, want at most 520", n)
	}
	t.Logf("the attackers made the attempts %v", attempts)
	// Most attempts wait for the venue's rate limit, so only few attempts end on a slow machine.
	if attempts["random ids"] < 4 || attempts["junk credentials"] < 4 {
		t.Errorf("the attackers made the attempts %v, want at least 4 of each kind", attempts)
	}
}
