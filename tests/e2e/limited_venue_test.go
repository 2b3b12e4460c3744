package e2e

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
)

// limitedVenue accepts a hundred calls in any minute and refuses the others with 429. Its responses have no rate-limit headers. It
// records all calls.
type limitedVenue struct {
	venue *demo.Venue
	// retryAfter is true if the refusals say how long to wait.
	retryAfter bool
	// books are the ids of all tokens of open markets. next is the number of books that startLoad has requested.
	books []string
	next  atomic.Int64
	// closed maps the paths of endpoints that refuse all calls to the value of Retry-After.
	closed map[string]string

	mu    sync.Mutex
	calls []venueCall
}

// venueCall is a call that a limitedVenue has received.
type venueCall struct {
	at      time.Time
	path    string
	refused bool
}

// venueLimit is the number of calls that a limitedVenue accepts in any minute.
const venueLimit = 100

func newLimitedVenue(retryAfter bool) *limitedVenue {
	v := &limitedVenue{venue: demo.New(demo.Config{}), retryAfter: retryAfter}
	for _, token := range v.venue.Tokens() {
		if token.Status == "OPEN" {
			v.books = append(v.books, token.TokenID)
		}
	}
	return v
}

// ServeHTTP implements http.Handler.
func (v *limitedVenue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	retryAfter, closed := v.closed[r.URL.Path]
	wait := v.admit(r.URL.Path, time.Now(), closed)
	if wait == 0 && !closed {
		v.venue.ServeHTTP(w, r)
		return
	}
	if !closed && v.retryAfter {
		retryAfter = strconv.Itoa(int(math.Ceil(wait.Seconds())))
	}
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(http.StatusTooManyRequests)
}

// admit records a call. If the limit is used up, admit returns the time until the venue accepts another call.
func (v *limitedVenue) admit(path string, now time.Time, closed bool) (wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var accepted []time.Time
	for _, c := range v.calls {
		if !c.refused && now.Sub(c.at) < time.Minute {
			accepted = append(accepted, c.at)
		}
	}
	slices.SortFunc(accepted, time.Time.Compare)
	if len(accepted) >= venueLimit {
		wait = accepted[len(accepted)-venueLimit].Add(time.Minute).Sub(now)
	}
	v.calls = append(v.calls, venueCall{now, path, closed || wait > 0})
	return wait
}

// count returns the numbers of calls that the venue has accepted and refused in a period.
func (v *limitedVenue) count(from, to time.Time) (accepted, refused int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.calls {
		switch {
		case c.at.Before(from) || !c.at.Before(to):
		case c.refused:
			refused++
		default:
			accepted++
		}
	}
	return accepted, refused
}

// most returns the greatest numbers of all calls and of refused calls in any minute.
func (v *limitedVenue) most() (calls, refused int) {
	v.mu.Lock()
	starts := slices.Clone(v.calls)
	v.mu.Unlock()
	for _, c := range starts {
		a, r := v.count(c.at, c.at.Add(time.Minute))
		calls, refused = max(calls, a+r), max(refused, r)
	}
	return calls, refused
}

// log returns the calls with their times since the given time, one second of calls on each line.
func (v *limitedVenue) log(since time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	second := math.Inf(-1)
	for _, c := range v.calls {
		at := c.at.Sub(since)
		if s := math.Floor(at.Seconds()); s != second {
			second = s
			fmt.Fprintf(&b, "\n%6.1fs", at.Seconds())
		}
		mark := "."
		if c.refused {
			mark = "X(" + c.path[strings.LastIndexByte(c.path, '/')+1:] + ")"
		}
		b.WriteString(" " + mark)
	}
	return b.String()
}

// TestRefusedEndpoint checks that an endpoint that refuses all calls for a day pauses the other endpoints for at most a minute, and
// does so only once.
func TestRefusedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLimitedVenue(true)
		defer v.venue.Close()
		v.closed = map[string]string{"/api/exchange/orderbook": "86400"}
		s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
			w.Fresh, w.Client.Transport, w.Stream.Dial = false, &direct{v}, noStream{}
		}, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--venue-url=http://venue.example", "--request-timeout=5s", "--cache-price-fresh=3s", "--cache-search-fresh=3s")
		s.callDirectly()
		s.serveUntilEnd(t)
		began := time.Now()
		queries := map[string]string{
			"prices": `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { freshness { stale } } }`,
			"search": `{ searchMarkets(first: 5) { nodes { freshness { stale } } } }`,
		}
		fresh := map[string]time.Time{} // the time of the last fresh response
		for time.Since(began) < 16*time.Minute {
			s.query(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook { sequence } } }`, vars{"ids": v.books[:1]}, anonymous)
			for name, query := range queries {
				data, errs := s.query(t, query, vars{"ids": v.books[:2]}, anonymous)
				if len(errs) == 0 && !strings.Contains(asJSON(data), `"stale":true`) {
					fresh[name] = time.Now()
				}
				if at := time.Since(began); at > time.Minute+10*time.Second && (len(errs) > 0 || time.Since(fresh[name]) > 20*time.Second) {
					t.Fatalf("after %v, %s got the errors %v and was last fresh after %v:%s", at, name, errs, fresh[name].Sub(began), v.log(began))
				}
			}
			time.Sleep(time.Second)
		}
		if _, refused := v.count(began, time.Now()); refused > 4 {
			t.Errorf("%d calls were refused in 16 minutes, want at most 4, because a pause is at least five minutes long:%s", refused, v.log(began))
		}
	})
}
