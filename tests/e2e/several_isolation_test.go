package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// eventsOfFirstVenue returns the events of the first venue's tokens and markets, with the times at which they came, while the markets
// of both venues move and the stream of the further venue has the fault of a row. The row may be nil.
func eventsOfFirstVenue(t *testing.T, row *streamRow) (came []string, troubled bool) {
	synctest.Test(t, func(t *testing.T) {
		a := simulate(t, "generic", demo.Config{Markets: 40}, nil)
		b := simulate(t, "generic", demo.Config{Markets: 40, Other: 1}, nil)
		s := readSeveral(t, a, b, shortWaits).withStreams(t)
		s.venue = a.engine
		ids, markets := s.openTokens(12), s.openMarkets(6)
		both := []string{"b:" + ids[0], ids[0], "b:" + ids[1], ids[1]}
		subs := []*events{
			s.sse(t, `subscription ($ids: [String!]!) { pricesChanged(tokenIds: $ids) { reason prices { token { tokenId } price { price } } } }`, vars{"ids": ids}, anonymous),
			s.sse(t, `subscription ($id: String!) { orderbookChanged(tokenId: $id) { reason bids { price size } asks { price size } } }`, vars{"id": ids[0]}, anonymous),
			s.sse(t, `subscription ($ids: [String!]!) { marketChanged(marketIds: $ids) { reason market { marketId status } } }`, vars{"ids": markets}, anonymous),
			s.sse(t, `subscription ($ids: [String!]!) { tradesAdded(tokenIds: $ids) { reason gap trades { tradeId price } } }`, vars{"ids": ids}, anonymous),
			s.sse(t, `subscription ($ids: [String!]!) { priceChanged(tokenIds: $ids) { reason token { tokenId } price { price } } }`, vars{"ids": both}, anonymous),
		}
		time.Sleep(3 * time.Second)
		for step := range 50 {
			if step == 5 && row != nil {
				if row.act != nil {
					row.act(b.engine)
				} else if b.set(t, row.Fault); row.closeFirst {
					b.engine.Restart(demo.CloseSlow)
				}
			}
			for _, v := range []*simulated{a, b} {
				v.engine.Step()
				if err := v.engine.SetPrice(ids[step%len(ids)], demo.Price(3000+100*step)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			troubled = troubled || s.Venues[1].Live.Status().State != "LIVE"
			var now []string
			for i, sub := range subs {
				for len(sub.came) > 0 {
					now = append(now, itemsOf(i, <-sub.came)...)
				}
			}
			slices.Sort(now)
			for _, item := range now {
				if !strings.Contains(item, `"b:`) {
					came = append(came, fmt.Sprint(step, " ", item))
				}
			}
		}
	})
	return came, troubled
}

// itemsOf returns the values in an event. How changes of one moment are divided among events depends on the scheduler.
func itemsOf(sub int, ev event) (items []string) {
	for name, v := range ev.data.(map[string]any) {
		all := append(list(v, "prices"), list(v, "trades")...)
		if len(all) == 0 {
			all = []any{v}
		}
		for _, item := range all {
			items = append(items, fmt.Sprint(sub, " ", name, " ", text(v, "reason"), " ", asJSON(item), " ", ev.errors))
		}
	}
	return items
}

// TestStreamFaultsOfAnotherVenue checks that no fault of a further venue's stream changes an event of the first venue or its time.
func TestStreamFaultsOfAnotherVenue(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	want, troubled := eventsOfFirstVenue(t, nil)
	if troubled || len(want) < 60 {
		t.Fatalf("without a fault, %d events came, and the further venue's stream was down: %v", len(want), troubled)
	}
	interrupted := 0
	for _, row := range streamRows() {
		got, troubled := eventsOfFirstVenue(t, &row)
		if troubled {
			interrupted++
		}
		if !slices.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: event %d of %d (want %d) differs: %.300q", row.name, i, len(got), len(want), got[i:min(i+1, len(got))])
		}
	}
	if interrupted < 10 {
		t.Errorf("only %d faults have interrupted the stream of the further venue", interrupted)
	}
}

// comparableData returns the data of a response as JSON, without what names the venue and without what depends on the time of reading.
func comparableData(data any) string {
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := map[string]any{}
			for name := range v {
				if !slices.Contains([]string{"id", "endCursor", "startCursor", "freshness", "venue", "currency"}, name) {
					out[name] = strip(v[name])
				}
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = strip(v[i])
			}
			return out
		}
		return v
	}
	return strings.ReplaceAll(asJSON(strip(data)), `"b:`, `"`)
}

// exampleOf returns a query in examples/ and its variables, for a venue whose ids begin with prefix.
func (v *simulated) exampleOf(t *testing.T, file, prefix string) (query string, variables vars) {
	t.Helper()
	decode(t, read(t, strings.TrimSuffix(file, ".graphql")+".json"), &variables)
	variables = translateStrings(map[string]any(variables), func(id string) string {
		if own := v.id(id); own != "" && (v.driver != "generic" || strings.HasPrefix(id, "0x5e") || len(id) > 4 && strings.Trim(id, "0123456789") == "") {
			return prefix + own
		}
		return ""
	}).(map[string]any)
	if query = read(t, file); prefix != "" {
		query = strings.ReplaceAll(query, "user(address: $address)", `user(address: $address, venue: "b")`)
		query = strings.NewReplacer("searchMarkets(", `searchMarkets(venues: ["b"], `, "searchEvents(", `searchEvents(venues: ["b"], `).Replace(query)
	}
	return query, variables
}

func exampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("examples/*.graphql")
	if err != nil || len(files) < 5 {
		t.Fatalf("there are the examples %v; error %v", files, err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "/venues.graphql") })
}

// TestEqualIDsOfTwoVenues reads two venues whose ids are all equal and whose prices differ, at the same time. Each answer must be that
// of a service that reads one of them alone.
func TestEqualIDsOfTwoVenues(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"generic", "polymarket"} {
		t.Run(driver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := simulate(t, driver, demo.Config{Latency: 5 * time.Millisecond}, nil)
				b := simulate(t, driver, demo.Config{Latency: 5 * time.Millisecond, Other: 1}, nil)
				alone := []*service{readSeveral(t, a, nil, nil), readSeveral(t, b, nil, nil)}
				s := readSeveral(t, a, b, nil)
				var running sync.WaitGroup
				var answers, different atomic.Int64
				for _, file := range exampleFiles(t) {
					if driver == "generic" && strings.Contains(file, "portfolio") {
						continue // a further generic venue serves no accounts
					}
					query, variables := a.exampleOf(t, file, "")
					want := []string{}
					for _, one := range alone {
						data, errors := one.query(t, query, variables, anonymous)
						want = append(want, comparableData(data)+fmt.Sprint(errorTexts(errors)))
					}
					if want[0] != want[1] {
						different.Add(1)
					}
					for i, prefix := range []string{"", "b:", "", "b:"} {
						query, variables := a.exampleOf(t, file, prefix)
						running.Go(func() {
							for range 3 { // later answers come from caches
								data, errors := s.query(t, query, variables, anonymous)
								if got := comparableData(data) + fmt.Sprint(errorTexts(errors)); got != want[i%2] {
									t.Errorf("%s of the venue %q: got %.400s, want %.400s", file, prefix, got, want[i%2])
								}
								answers.Add(1)
							}
						})
					}
				}
				running.Wait()
				if answers.Load() < 60 || different.Load() < 4 {
					t.Errorf("%d answers were compared, and %d examples differ between the venues", answers.Load(), different.Load())
				}
			})
		})
	}
}

// TestEqualTokensOfTwoVenues checks that streams and flushes of equal ids concern the right venue only.
func TestEqualTokensOfTwoVenues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simulate(t, "generic", demo.Config{Markets: 40}, nil)
		b := simulate(t, "generic", demo.Config{Markets: 40, Other: 1}, nil)
		s := readSeveral(t, a, b, nil).withStreams(t)
		s.venue = a.engine
		id := s.openTokens(1)[0]
		prices := func() string {
			data := s.ask(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { price { price } } }`, vars{"ids": []string{id, "b:" + id}}, anonymous)
			return strings.Join(pluck(data, "tokens", "price.price"), " ")
		}
		set := func(ofA, ofB demo.Price) {
			if a.engine.SetPrice(id, ofA) != nil || b.engine.SetPrice(id, ofB) != nil {
				t.Fatal("the prices cannot be set")
			}
		}
		set(3100, 4200)
		if got := prices(); got != "0.31 0.42" {
			t.Fatalf("the prices are %s, want 0.31 0.42", got)
		}
		set(3300, 4400)
		for _, flush := range []struct{ key, want string }{{"b:" + id, "0.31 0.44"}, {id, "0.33 0.44"}} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Admin.Addr().String()+"/cache/flush?kind=price&key="+flush.key, nil)
			client := &http.Client{Transport: &direct{s.Admin.HTTP.Handler}}
			if resp, err := client.Do(r); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("the flush of %s got %v and the error %v", flush.key, resp, err)
			}
			if got := prices(); got != flush.want {
				t.Errorf("after the flush of %s, the prices are %s, want %s", flush.key, got, flush.want)
			}
		}
		const query = `subscription ($ids: [String!]!) { priceChanged(tokenIds: $ids) { token { tokenId } price { price } } }`
		var subs []*events
		for _, ids := range [][]string{{id}, {"b:" + id}, {id, "b:" + id}, {"b:" + id, id}} {
			subs = append(subs, s.sse(t, query, vars{"ids": ids}, anonymous))
		}
		for i := range demo.Price(20) {
			time.Sleep(time.Second)
			set(2000+100*i, 6000+100*i)
		}
		time.Sleep(3 * time.Second)
		for i, sub := range subs {
			last, n := map[string]string{}, 0
			for ; len(sub.came) > 0; n++ {
				ev := <-sub.came
				token, price := text(ev.data, "priceChanged.token.tokenId"), text(ev.data, "priceChanged.price.price")
				if last[token] = price; (price < "0.41") != (token == id) {
					t.Errorf("the price of %s is %s", token, price)
				}
			}
			if n < 10 || last[id] != "" && last[id] != "0.39" || last["b:"+id] != "" && last["b:"+id] != "0.79" {
				t.Errorf("subscription %d got %d events and ends with %v", i, n, last)
			}
		}
	})
}
