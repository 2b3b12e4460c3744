package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
	"oddsgraph/tests/tool"
)

// asked is a service over Polymarket and Kalshi with a file of questions. Its question "q" is the same token on both.
type asked struct {
	*service
	a, b  *simulated
	token demo.Token
	path  string
	rules string // the rules text that confirm has confirmed last
	// markets counts the calls for markets of both simulators.
	markets atomic.Int64
	last    any // the last event of watch
	events  *events
}

func askQuestion(t *testing.T, args ...string) *asked {
	t.Helper()
	time.Sleep(time.Until(startTime)) // see startOverSimulator
	x := &asked{path: filepath.Join(t.TempDir(), "questions.json")}
	count := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/markets") || strings.HasSuffix(r.URL.Path, "/markets/keyset") {
				x.markets.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}
	x.a, x.b = simulate(t, "polymarket", demo.Config{Markets: 40}, count), simulate(t, "kalshi", demo.Config{Markets: 40}, count)
	x.token = x.a.engine.Tokens()[slices.IndexFunc(x.a.engine.Tokens(), func(o demo.Token) bool {
		q, _ := x.a.engine.Quote(o.TokenID)
		return o.Status == "OPEN" && o.Outcome == "YES" && q.BestBid > 2000 && q.BestAsk > 0 && !strings.Contains(o.Slug, "minutes")
	})]
	x.write(t, "EXACT", "", "")
	x.service = readSeveral(t, x.a, x.b, withSimulatedStream, append(args, "--questions-file="+x.path)...).withStreams(t)
	time.Sleep(5 * time.Second)
	x.confirm(t, "EXACT", "")
	return x
}

// ids returns the ids of the token in the graph.
func (x *asked) ids() [2]string {
	return [2]string{x.a.id(x.token.TokenID), "b:" + x.b.id(x.token.TokenID)}
}

// write writes the file. hash is the confirmed hash of both rules texts; it may be empty.
func (x *asked) write(t *testing.T, match, hash, differences string) {
	t.Helper()
	if hash != "" {
		hash = `"rulesSha256": "` + hash + `", `
	}
	ids := x.ids()
	text := fmt.Sprintf(`{"version": 1, "questions": [{"id": "q", "title": "A question", "match": %q, "differences": [%s], "checkedAt": "2026-11-20",
		"legs": [{"token": %q, %s"takerFeeRate": "0"}, {"token": %q, %s"takerFeeRate": "0.07"}]},
		{"id": "none", "title": "Another", "match": "NEAR", "differences": ["all"], "checkedAt": "2026-11-20", "legs": [{"token": "1"}, {"token": "b:KXNONE:yes"}]}]}`,
		match, differences, ids[0], hash, ids[1], hash)
	if err := os.WriteFile(x.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// confirm writes the file with the hash of the present rules text, and waits until it is in use.
func (x *asked) confirm(t *testing.T, match, differences string) {
	t.Helper()
	x.rules = text(x.ask(t, `query ($id: String!) { token(tokenId: $id) { market { description } } }`, vars{"id": x.ids()[0]}, anonymous), "token.market.description")
	x.write(t, match, questions.RulesHash(x.rules), differences)
	time.Sleep(2 * time.Second)
}

const comparedBooks = `comparable reasons { code venue } best(side: BUY) { price } spread
	orderbook(depth: 200) { bids { price size venue } asks { price size venue } }`

const comparison = comparedBooks + `
	anyway: best(side: SELL, anyway: true) { price comparable } book: orderbook(anyway: true) { complete missing comparable }`

func (x *asked) watch(t *testing.T, fields string) {
	x.events = x.dial(t, anonymous).subscribe(t, `subscription { questionChanged(questionId: "q", depth: 200, maxPerSecond: 20) { reason question { `+fields+` } } }`, nil)
	time.Sleep(5 * time.Second)
}

// event returns the question in the last event.
func (x *asked) event(t *testing.T) any {
	t.Helper()
	synctest.Wait()
	for len(x.events.came) > 0 {
		x.last = x.events.value(t)
	}
	return at(x.last, "question")
}

// codes returns the reasons of a question. It fails the test if the prices do not agree with them.
func codes(t *testing.T, q any) string {
	t.Helper()
	var all []string
	for _, r := range list(q, "reasons") {
		all = append(all, strings.TrimSpace(text(r, "venue")+" "+text(r, "code")))
	}
	shown := at(q, "best") != nil && at(q, "spread") != nil && at(q, "orderbook") != nil
	hidden := at(q, "best") == nil && at(q, "spread") == nil && at(q, "orderbook") == nil
	if comparable := at(q, "comparable") == true; comparable != (all == nil) || comparable && !shown || !comparable && !hidden {
		t.Errorf("the question is %s", asJSON(q))
	}
	return strings.Join(all, ", ")
}

// queried returns the question as a query shows it.
func (x *asked) queried(t *testing.T) any {
	t.Helper()
	return at(x.ask(t, `{ question(questionId: "q") { `+comparison+` } }`, nil, anonymous), "question")
}

// want compares the reasons of a query and of the last event.
func (x *asked) want(t *testing.T, step, want string) (queried any) {
	t.Helper()
	queried = x.queried(t)
	if got := codes(t, queried); got != want {
		t.Errorf("%s: a query has the reasons %q, want %q", step, got, want)
	}
	if got := codes(t, x.event(t)); got != want {
		t.Errorf("%s: the last event has the reasons %q, want %q", step, got, want)
	}
	return queried
}

// freshTime is the fresh time of markets, and a little more for the read at its end.
const freshTime = time.Minute + 2*time.Second

// TestQuestionReasons checks each reason why a question is not comparable, in queries and in events.
func TestQuestionReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := askQuestion(t)
		for range 2 { // without a subscription, which would read the market again
			if got := x.queried(t); codes(t, got) != "" {
				t.Fatalf("at the start, the question is %s", asJSON(got))
			}
		}
		must(t, x.b.engine.Reword(x.token.MarketID, "Other rules."))
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{time.Minute - time.Second, ""}, {2 * time.Second, "b RULES_CHANGED"}} { // the first response would be cached for five seconds
			time.Sleep(step.wait)
			if got := codes(t, x.queried(t)); got != step.want {
				t.Errorf("%v later, a query has the reasons %q, want %q", step.wait, got, step.want)
			}
		}
		x.confirm(t, "EXACT", "") // the rules of the first venue
		must(t, x.b.engine.Reword(x.token.MarketID, x.rules))
		time.Sleep(freshTime)
		x.watch(t, comparison)
		x.last = x.events.reason(t, "INITIAL")
		q := x.want(t, "start", "")
		if at(q, "anyway.comparable") != true {
			t.Errorf("got %s", asJSON(q))
		}
		engines := []*demo.Venue{x.a.engine, x.b.engine}
		for i := range engines {
			must(t, engines[i].Reword(x.token.MarketID, "Other rules."))
			time.Sleep(freshTime)
			if q = x.want(t, "new rules", []string{"polymarket RULES_CHANGED", "polymarket RULES_CHANGED, b RULES_CHANGED"}[i]); at(q, "anyway.comparable") != false || at(q, "book.comparable") != false {
				t.Errorf("anyway is not marked: %s", asJSON(q))
			}
		}
		x.confirm(t, "EXACT", "")
		x.want(t, "confirmed", "")
		for i, venue := range []string{"polymarket", "b"} {
			must(t, engines[i].SetStatus(x.token.MarketID, "CLOSED"))
			time.Sleep(2 * time.Second)
			if venue == "b" && codes(t, x.event(t)) == "" { // only Kalshi announces it
				t.Error("a market that its stream has closed is comparable")
			}
			time.Sleep(freshTime + 5*time.Second) // the longest pause between two looks at stale data
			x.want(t, "closed", venue+" MARKET_NOT_OPEN")
			must(t, engines[i].SetStatus(x.token.MarketID, "OPEN"))
			time.Sleep(freshTime + 5*time.Second)
			x.want(t, "open", "")
		}
		x.write(t, "EXACT", "", "")
		time.Sleep(2 * time.Second)
		x.want(t, "no hash", "polymarket RULES_UNKNOWN, b RULES_UNKNOWN")
		x.confirm(t, "NEAR", `"ends later"`)
		if q = x.want(t, "near", "NEAR"); at(q, "anyway") == nil || at(q, "book.complete") != true {
			t.Errorf("anyway shows no prices of NEAR: %s", asJSON(q))
		}
		x.confirm(t, "RELATED", "")
		if q = x.want(t, "related", "RELATED"); at(q, "anyway") != nil || at(q, "book") != nil {
			t.Errorf("the prices of RELATED are shown: %s", asJSON(q))
		}
		x.confirm(t, "EXACT", "")
		x.want(t, "exact again", "")
		none := at(x.ask(t, `{ question(questionId: "none") { `+comparison+` } }`, nil, anonymous), "question")
		if got := codes(t, none); got != "NEAR, polymarket MARKET_UNKNOWN, polymarket NO_BOOK, b MARKET_UNKNOWN, b NO_BOOK" {
			t.Errorf("unknown tokens have the reasons %s", got)
		}
	})
}

// TestQuestionOfFailedVenue checks that nothing is compared while a venue fails, neither before nor after its data are too old to be
// served, and that the other venue's prices are shown on demand.
func TestQuestionOfFailedVenue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := askQuestion(t)
		x.watch(t, comparison)
		x.want(t, "start", "")
		x.b.set(t, faults.Fault{Kind: faults.Status, Status: http.StatusServiceUnavailable}, faults.Fault{On: faults.OnFrames, Kind: faults.Close}, faults.Fault{On: faults.OnOpens, Kind: faults.Refuse})
		x.move(t, x.b)
		time.Sleep(3 * time.Second)
		if got := codes(t, x.event(t)); got != "b STALE" {
			t.Errorf("after the end of the stream, the last event has the reasons %q, want a stale book", got)
		}
		time.Sleep(freshTime)
		x.want(t, "stale", "b STALE, b STALE")
		time.Sleep(time.Hour)
		if got := codes(t, x.queried(t)); got != "b VENUE_FAILED, b VENUE_FAILED" {
			t.Errorf("after an hour, the reasons are %q", got)
		}
		late := x.dial(t, anonymous).subscribe(t, `subscription { questionChanged(questionId: "q") { reason question { `+comparison+` legs { rules } } } }`, nil)
		time.Sleep(40 * time.Second)
		first := late.reason(t, "INITIAL")
		if got := codes(t, at(first, "question")); got != "b VENUE_FAILED, b VENUE_FAILED" || asJSON(at(first, "question.book.missing")) != `["b"]` || at(first, "question.legs.1.rules") != "UNKNOWN" || at(first, "question.anyway") == nil {
			t.Errorf("the first event over a venue that fails is %s", asJSON(first))
		}
		x.b.set(t, faults.Fault{Kind: faults.Delay}, faults.Fault{On: faults.OnOpens, Kind: faults.Refuse})
		hung := x.dial(t, anonymous).subscribe(t, `subscription { questionChanged(questionId: "q") { reason question { legs { token { outcome orderbook(depth: 5) { bids { price } } market { question } } } } } }`, nil)
		time.Sleep(40 * time.Second)
		for i := range 4 {
			synctest.Wait()
			if len(hung.came) == 0 {
				t.Errorf("%d changes after the start, an event with the token of a venue that hangs is late", i)
			}
			for len(hung.came) > 0 {
				<-hung.came
			}
			x.move(t, x.a)
			time.Sleep(2 * time.Second)
		}
		x.b.set(t)
		time.Sleep(10 * time.Minute)
		x.want(t, "works again", "")
	})
}

// TestQuestionReadsMarketsOnce checks that a subscription reads the market of each leg once in its fresh time.
func TestQuestionReadsMarketsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := askQuestion(t)
		x.watch(t, comparison)
		before := x.markets.Load()
		for range 100 {
			x.move(t, x.a)
			x.move(t, x.b)
			time.Sleep(6 * time.Second)
		}
		if n := x.markets.Load() - before; n < 18 || n > 20 {
			t.Errorf("in 10 minutes, the markets of two legs were read %d times, want 20", n)
		}
		x.want(t, "end", "")
	})
}

// TestQuestionsFile checks the reload of the file, the list, and what the status says about an invalid file.
func TestQuestionsFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := askQuestion(t)
		const query = `{ questions(first: 1, query: "QUESTION a") { totalCount nodes { questionId } pageInfo { hasNextPage } } serviceStatus { questions { count error } } }`
		wantJSON(t, "the list", x.ask(t, query, nil, anonymous), `{"questions":{"nodes":[{"questionId":"q"}],"pageInfo":{"hasNextPage":false},"totalCount":1},"serviceStatus":{"questions":{"count":2,"error":null}}}`)
		page := x.ask(t, `{ questions(first: 1) { totalCount pageInfo { endCursor hasNextPage } } }`, nil, anonymous)
		page = x.ask(t, `query ($after: String) { questions(after: $after) { nodes { questionId } } }`, vars{"after": at(page, "questions.pageInfo.endCursor")}, anonymous)
		wantJSON(t, "the second page", page, `{"questions":{"nodes":[{"questionId":"none"}]}}`)
		const byToken = `query ($id: String!) { token(tokenId: $id) { questions { questionId } market { questions { questionId legs { token { tokenId } } } } } }`
		ids := x.ids()
		for _, id := range ids {
			wantJSON(t, "the questions of "+id, x.ask(t, byToken, vars{"id": id}, anonymous),
				fmt.Sprintf(`{"token":{"market":{"questions":[{"legs":[{"token":{"tokenId":%q}},{"token":{"tokenId":%q}}],"questionId":"q"}]},"questions":[{"questionId":"q"}]}}`, ids[0], ids[1]))
		}
		x.write(t, "EXAC", "", "")
		time.Sleep(2 * time.Second)
		status := x.ask(t, query, nil, anonymous)
		if got := text(status, "serviceStatus.questions.error"); len(list(status, "questions.nodes")) != 1 || got != "line 1: /questions/0/match: must be EXACT, NEAR or RELATED" {
			t.Errorf("with an invalid file, got %s", asJSON(status))
		}
		ready, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.URL()+"/readyz", nil)
		must(t, err)
		if got := x.do(t, ready); got.status != http.StatusOK || !strings.Contains(got.body, "the earlier questions stay in use: ") || !strings.Contains(got.body, "line 1: ") {
			t.Errorf("/readyz says %d %s", got.status, got.body)
		}
		lost := x.dial(t, anonymous).subscribe(t, `subscription { questionChanged(questionId: "q") { reason } }`, nil)
		time.Sleep(5 * time.Second)
		x.ask(t, byToken, vars{"id": ids[0]}, anonymous) // cached for five seconds
		must(t, os.WriteFile(x.path, []byte(`{"version": 1, "questions": []}`), 0o600))
		time.Sleep(2 * time.Second)
		if got := x.ask(t, byToken, vars{"id": ids[0]}, anonymous); len(list(got, "token.questions")) != 0 {
			t.Errorf("a response before the reload was sent again: %s", asJSON(got))
		}
		lost.reason(t, "INITIAL")
		for len(lost.came) > 1 {
			lost.value(t)
		}
		lost.wantEnd(t, "BAD_USER_INPUT")
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// move moves the token at a venue to another price.
func (x *asked) move(t *testing.T, v *simulated) {
	t.Helper()
	q, _ := v.engine.Quote(x.token.TokenID)
	next := demo.Price(3000)
	if q.Price == next {
		next = 4000
	}
	must(t, v.engine.SetPrice(x.token.TokenID, next))
}

// truth returns the merge of the present books of both simulators, in the form of questionLevels.
func (x *asked) truth(bids bool) []string {
	var all []questions.Level
	for i, v := range []*simulated{x.a, x.b} {
		book, _ := v.engine.Book(x.token.TokenID)
		side := book.Asks
		if bids {
			side = book.Bids
		}
		for _, l := range side {
			all = append(all, questions.Level{Level: market.Level{Price: market.MustDecimal(l.Price.String()), Size: market.MustDecimal(l.Size.String())}, Leg: i})
		}
	}
	slices.SortStableFunc(all, func(a, b questions.Level) int { // Polymarket has no fee, so its equal prices are better
		if bids {
			a, b = b, a
			return cmp.Or(a.Price.Cmp(b.Price), b.Leg-a.Leg)
		}
		return cmp.Or(a.Price.Cmp(b.Price), a.Leg-b.Leg)
	})
	var out []string
	for _, l := range all {
		out = append(out, fmt.Sprintf("%s %s x %s", []string{"polymarket", "b"}[l.Leg], l.Price.Reduce(), l.Size.Reduce()))
	}
	return out
}

func questionLevels(t *testing.T, side []any) (out []string) {
	t.Helper()
	for _, l := range side {
		price, err := market.ParseDecimal(text(l, "price"))
		must(t, err)
		size, err := market.ParseDecimal(text(l, "size"))
		must(t, err)
		out = append(out, fmt.Sprintf("%s %s x %s", text(l, "venue"), price.Reduce(), size.Reduce()))
	}
	return out
}

// TestQuestionBookEqualsMerge compares the book of each event with a merge that the test computes from both simulators, in make
// nightly over 10,000 changes. In every second block, faults spoil the streams and calls of both. Then nobody knows that the frame that was lost last is
// lost, so each level of a comparable book must be one that the venue has had in its last changes. When the faults have ended, the book
// must be equal again.
func TestQuestionBookEqualsMerge(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	blocks, changes := 16, 100
	if tool.Nightly() {
		blocks = 100
	}
	synctest.Test(t, func(t *testing.T) {
		x := askQuestion(t)
		x.watch(t, comparedBooks)
		r := rand.New(rand.NewPCG(48, 1))
		compared, refused, spoiledOnes := 0, 0, 0
		seen := map[string]int{} // the number of the last change after which a venue had a level
		compare := func(step string) {
			t.Helper()
			q := x.event(t)
			if codes(t, q) != "" {
				refused++
				return
			}
			compared++
			for side, bids := range map[string]bool{"bids": true, "asks": false} {
				if got, want := questionLevels(t, list(q, "orderbook."+side)), x.truth(bids); !slices.Equal(got, want) {
					t.Errorf("%s: the %s are %q, want %q", step, side, got, want)
				}
			}
		}
		for block := range blocks {
			spoiled := block%2 == 1
			if spoiled {
				for _, v := range []*simulated{x.a, x.b} {
					v.set(t, faultsOfBlock(r)...)
				}
			}
			for change := range changes {
				v := []*simulated{x.a, x.b}[r.IntN(2)]
				must(t, v.engine.SetPrice(x.token.TokenID, demo.Price(1000+100*r.IntN(80))))
				if r.IntN(3) == 0 {
					must(t, v.engine.Trade(addressOf3, x.token.TokenID, demo.Buy, demo.Size(100+r.IntN(500))))
				}
				for _, l := range append(x.truth(true), x.truth(false)...) {
					seen[l] = block*changes + change
				}
				time.Sleep(200 * time.Millisecond)
				if !spoiled {
					compare(fmt.Sprint("block ", block, ", change ", change))
				} else if q := x.event(t); codes(t, q) == "" {
					spoiledOnes++
					for _, side := range []string{"bids", "asks"} {
						for _, l := range questionLevels(t, list(q, "orderbook."+side)) {
							if last, ok := seen[l]; !ok || last < block*changes+change-changes {
								t.Errorf("block %d, change %d: the %s have %s, which no venue had lately", block, change, side, l)
							}
						}
					}
				}
				if t.Failed() {
					return
				}
			}
			if spoiled {
				x.a.set(t)
				x.b.set(t)
				time.Sleep(2 * time.Minute)
				x.move(t, x.a)
				x.move(t, x.b)
				time.Sleep(10 * time.Second)
				compare(fmt.Sprint("after block ", block))
			}
		}
		if compared < blocks/2*changes || refused > compared/100 || spoiledOnes < blocks*changes/10 {
			t.Errorf("%d books were compared without faults and %d with faults, and %d times the question was not comparable", compared, spoiledOnes, refused)
		}
		t.Logf("%d books were compared without faults and %d with faults", compared, spoiledOnes)
	})
}

func faultsOfBlock(r *rand.Rand) []faults.Fault {
	kinds := []faults.Fault{
		{On: faults.OnFrames, Kind: faults.Drop}, {On: faults.OnFrames, Kind: faults.Duplicate}, {On: faults.OnFrames, Kind: faults.Reorder},
		{On: faults.OnFrames, Kind: faults.Delay, DelayMs: 700}, {On: faults.OnFrames, Kind: faults.Close}, {Kind: faults.Status, Status: 503}, {Kind: faults.Truncate},
	}
	var out []faults.Fault
	for range 2 {
		f := kinds[r.IntN(len(kinds))]
		f.Probability, f.Seed = 0.05, r.Uint64()
		out = append(out, f)
	}
	return out
}
