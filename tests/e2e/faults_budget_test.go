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
	"testing/synctest"
	"time"
)

// audience is a load as frontends make it: boards of 50 prices and market pages of two books, each polled every second by a
// client of its own.
type audience struct {
	*crowd
	boards, pages int
	markets       [][2]string
	// settled tells that everybody's last answer was streamed, after which nobody may be sent anything else.
	settled atomic.Bool
	// bound is how old a stale value may be at most.
	bound time.Duration
	// last tells by client whether its last answer was streamed.
	last map[int]bool
}

// onTheWay is how long an answer may take to those who look how old it is.
const onTheWay = 15 * time.Second

// boardTokens is how many tokens all boards show together.
const boardTokens = 500

const (
	boardQuery = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price timestamp freshness { stale source receivedAt } } }`
	pageQuery  = `query ($yes: String!, $no: String!) {
		yes: token(tokenId: $yes) { market { question } orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source receivedAt } } }
		no: token(tokenId: $no) { orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source receivedAt } } } }`
)

// newAudience returns an audience of tokens that are all remembered: the boards show the first 500, the pages both tokens of
// markets that no board shows.
func newAudience(t testing.TB, s *service, w *annals, boards, pages int) *audience {
	t.Helper()
	a := &audience{crowd: newCrowd(s, w), boards: boards, pages: pages, bound: 5*time.Minute + onTheWay, last: make(map[int]bool)}
	of := make(map[string][]string)
	for _, token := range w.venue.Tokens() {
		if ids := append(of[token.MarketID], token.TokenID); slices.Contains(w.tokens[boardTokens:], token.TokenID) && len(a.markets) < pages {
			if of[token.MarketID] = ids; len(ids) == 2 {
				a.markets = append(a.markets, [2]string(ids))
			}
		}
	}
	if len(a.markets) < pages {
		t.Fatalf("only %d markets are remembered and on no board", len(a.markets))
	}
	return a
}

func client(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, byte(n >> 8), byte(n)}) }

// attend runs the load for some time.
func (a *audience) attend(d time.Duration) { a.run(func() time.Time { return time.Now().Add(d) }, nil) }

// attendSettled runs the load until it has settled, which it has to within a time, and then for d more. then is called in
// between; it may be nil.
func (a *audience) attendSettled(t testing.TB, within, d time.Duration, then func()) {
	t.Helper()
	began := time.Now()
	a.run(func() time.Time { return began.Add(within) }, func() time.Time {
		t.Logf("all was streamed after %v", time.Since(began).Round(time.Millisecond))
		if then != nil {
			then()
		}
		return time.Now().Add(d)
	})
	if !a.settled.Load() {
		t.Errorf("after %v not all is streamed", within)
	}
}

// run runs the load until a time, which settled replaces once everybody is sent what is streamed.
func (a *audience) run(until func() time.Time, settled func() time.Time) {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	var all sync.WaitGroup
	come := func(n int, query string, variables vars, take func(phase string, data any) (streamed bool)) {
		all.Go(func() {
			select {
			case <-time.After(time.Duration(rand.N(1000)) * time.Millisecond):
			case <-ctx.Done():
			}
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for ctx.Err() == nil {
				var out struct {
					Data   any          `json:"data"`
					Errors []graphError `json:"errors"`
				}
				phase := ""
				if settled != nil && !a.settled.Load() {
					phase = "settling: "
				}
				if err := a.postFrom(ctx, client(n), query, variables, anonymous, &out); err != nil {
					if ctx.Err() == nil {
						a.complain(fmt.Errorf("no answer: %w", err))
					}
					return
				}
				for _, e := range out.Errors {
					a.note(phase + "error " + e.Extensions.Code)
					if e.Extensions.Code == "RATE_LIMITED" && e.Extensions.RetryAfterMs <= 0 {
						a.complain(fmt.Errorf("%s without a time to come back", e))
					}
				}
				a.heard(n, take(phase, out.Data) && len(out.Errors) == 0)
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
			ids[j] = a.annals.tokens[(i*50+j)%boardTokens]
		}
		come(i, boardQuery, vars{"ids": ids}, func(phase string, data any) bool {
			streamed := true
			for _, p := range list(data, "tokenPrices") {
				if p != nil {
					a.complain(a.annals.checkPrice(p))
					streamed = a.age(phase, "price", p) && streamed
				}
			}
			return streamed
		})
	}
	for i, ids := range a.markets {
		come(a.boards+i, pageQuery, vars{"yes": ids[0], "no": ids[1]}, func(phase string, data any) bool {
			streamed := true
			for j, side := range []string{"yes", "no"} {
				if b := at(data, side+".orderbook"); b != nil {
					a.complain(a.annals.checkBook(ids[j], b))
					streamed = a.age(phase, "book", b) && streamed
				}
			}
			return streamed
		})
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := until(); time.Now().Before(end); <-tick.C {
		a.annals.step()
		if settled != nil && !a.settled.Load() && a.allStreamed() {
			a.settled.Store(true)
			end = settled()
		}
	}
	cancel()
	all.Wait()
}

// heard notes whether a client's answer was streamed.
func (a *audience) heard(client int, streamed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[client] = streamed
}

// allStreamed tells whether the last answers of all were streamed.
func (a *audience) allStreamed() bool {
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

// age notes how fresh a value is and where it is from, and tells whether it was streamed and is fresh.
func (a *audience) age(phase, kind string, v any) (streamed bool) {
	stale, source := at(v, "freshness.stale") == true, text(v, "freshness.source")
	if !stale {
		a.note(phase + kind + " fresh " + source)
		return source == "STREAM"
	}
	a.note(phase + kind + " stale")
	received, _ := time.Parse(time.RFC3339Nano, text(v, "freshness.receivedAt"))
	if age := time.Since(received); age > a.bound {
		a.complain(fmt.Errorf("a %s that is stale for %v", kind, age))
	}
	return false
}

// limited are the requests a minute that venues of these tests take of an address and of a key.
var limited = [2]int{100, 300}

// wantNoRefusal fails when the venue had to refuse a call for its rate.
func (w *annals) wantNoRefusal(t testing.TB) {
	t.Helper()
	stats := w.venue.Stats()
	if n := stats.Statuses["429"]; n != 0 {
		t.Errorf("the venue refused %d calls: %v", n, stats.Requests)
	}
	t.Logf("the venue was asked %v", stats.Requests)
}

// wantStreamed checks that an audience saw nothing but this once it had settled, and nothing wrong at any time.
func (a *audience) wantStreamed(t testing.TB, want ...string) {
	t.Helper()
	seen := a.sights()
	t.Logf("the audience saw %v", seen)
	for what, n := range seen {
		if !strings.HasPrefix(what, "settling: ") && !slices.Contains(want, what) {
			t.Errorf("after all was streamed, %d times: %s", n, what)
		}
	}
	for _, what := range want {
		if seen[what] == 0 {
			t.Errorf("nobody saw: %s", what)
		}
	}
	a.wantNothingWrong(t)
}

// wantNothingWrong fails for everything that was wrong.
func (c *crowd) wantNothingWrong(t testing.TB) {
	t.Helper()
	for what, n := range c.complaints() {
		t.Errorf("%d times: %s", n, what)
	}
}

const (
	// soakEnv names the environment's variable that says how long a soak lasts.
	soakEnv = "SOAK"
	// soakShort is how long it lasts where nobody says so; from soakLong on all is of full size.
	soakShort, soakLong = 8 * time.Second, time.Minute
)

// soakLength is how long a soak is to last.
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

// polling returns how many boards there are and for how long: 300 for two minutes in a soak of full size.
func polling(t testing.TB) (boards int, length time.Duration) {
	t.Helper()
	if soakLength(t) >= soakLong {
		return 300, 2 * time.Minute
	}
	return 20, 6 * time.Second
}

// TestPollingWithinTheBudget polls 500 prices and 40 books at a venue that takes 100 requests a minute, over a stream.
func TestPollingWithinTheBudget(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newAnnals(t, 1, 560, limited)
	s := startLive(t, w.args()...)
	s.streaming(t)
	boards, length := polling(t)
	within := 15 * time.Second
	if boards < 300 { // else it is a soak, on a machine that does nothing else
		within = patience
	}
	a := newAudience(t, s, w, boards, 20)
	a.attendSettled(t, within, length, nil)
	a.disperse()
	a.wantStreamed(t, "price fresh STREAM", "book fresh STREAM")
	w.wantNoRefusal(t)
}

// TestPollingWithoutTheStream is TestPollingWithinTheBudget with a stream that is refused and shorter stale times.
func TestPollingWithoutTheStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, pollWithoutTheStream) // a slow machine would ask less often than the budget allows
}

func pollWithoutTheStream(t *testing.T) {
	w := newMutedAnnals(t, 1, 560, [2]int{100, 20})
	s := startOver(t, w, "--cache-stretch=6s", "--cache-price-stale=4s", "--cache-book-stale=4s", "--request-timeout=30s")
	boards, length := polling(t)
	a := newAudience(t, s, w, boards, 20)
	a.bound = 6*time.Second + time.Second
	// An account is asked for more than its key may ask.
	refused := make(chan map[string]int)
	go func() {
		codes := map[string]int{}
		defer func() { refused <- codes }()
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for range 26 {
			var out struct {
				Data   any          `json:"data"`
				Errors []graphError `json:"errors"`
			}
			if err := a.postFrom(a.ctx, client(9999), branchesQuery, nil, keyOf50, &out); err != nil {
				a.complain(err)
				return
			}
			for _, e := range out.Errors {
				codes[e.Extensions.Code]++
			}
			codes["answered"] += len(branches) - len(out.Errors)
			<-tick.C
		}
	}()
	a.attend(length + 8*time.Second)
	codes := <-refused
	a.disperse()
	seen := a.sights()
	t.Logf("the audience saw %v, the account %v", seen, codes)
	if seen["price stale"] == 0 || seen["book stale"] == 0 || seen["error RATE_LIMITED"] == 0 || seen["price fresh REST"] == 0 {
		t.Errorf("not all was seen of what is fresh, stale and refused: %v", seen)
	}
	for what := range seen {
		if strings.HasPrefix(what, "error ") && what != "error RATE_LIMITED" {
			t.Errorf("%d times: %s", seen[what], what)
		}
	}
	if codes["RATE_LIMITED"] == 0 || codes["answered"] == 0 || len(codes) != 2 {
		t.Errorf("the account's branches: %v", codes)
	}
	a.wantNothingWrong(t)
	w.wantNoRefusal(t)
}

// TestAttackersBesideHonestClients asks for 40 random ids, and with junk credentials, as fast as it goes, beside honest
// clients: theirs stay fresh, and neither budget nor watches go to the attacker.
func TestAttackersBesideHonestClients(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newAnnals(t, 1, 540, limited)
	s := startLive(t, w.args()...)
	s.streaming(t)
	a := newAudience(t, s, w, 50, 0)
	attackers, stop := context.WithCancel(context.Background())
	var attacking sync.WaitGroup
	attempts := map[string]int{}
	var mu sync.Mutex
	attack := func(name string, n int, request func(r *rand.Rand) (string, vars, string)) {
		for i := range 2 { // connections
			attacking.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
				for attackers.Err() == nil {
					query, variables, credentials := request(r)
					var out struct{ Errors []graphError }
					err := s.postFrom(attackers, client(n), query, variables, credentials, &out)
					mu.Lock()
					attempts[name]++
					mu.Unlock()
					if err != nil && attackers.Err() == nil {
						a.complain(err)
					}
				}
			})
		}
	}
	a.attendSettled(t, patience, 8*time.Second, func() {
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
	a.disperse()
	a.wantStreamed(t, "price fresh STREAM")
	w.wantNoRefusal(t)
	stats := w.venue.Stats()
	for channel := range stats.Stream.Topics {
		if !slices.Contains([]string{"prices", "orderbook"}, channel) {
			t.Errorf("watches of %s are spent", channel)
		}
	}
	if n := stats.Stream.Topics["prices"]; n > 500 {
		t.Errorf("%d prices are watched", n)
	}
	if n := stats.Stream.Subscribes["prices"]; n > 520 {
		t.Errorf("%d prices were subscribed to", n)
	}
	t.Logf("%v attempts", attempts)
	if attempts["random ids"] < 20 || attempts["junk credentials"] < 20 {
		t.Errorf("the attackers made only %v attempts", attempts)
	}
}
