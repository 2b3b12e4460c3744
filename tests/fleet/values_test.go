//go:build unix

package fleet

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// startThree starts a Redis server and three replicas that share the server. The replicas do not limit the rate of their calls to
// the venue.
func startThree(t *testing.T, v *venue, args ...string) (server *tool.Redis, replicas []*replica) {
	t.Helper()
	server = tool.StartRedis(t)
	for range 3 {
		replicas = append(replicas, start(t, v, sharedFlags(server, append([]string{"--venue-public-per-minute=0", "--venue-key-per-minute=0"}, args...)...)...).waitConnected(t))
	}
	return server, replicas
}

// markets returns the ids of the first n markets of a venue.
func (v *venue) markets(n int) (ids []string) {
	for _, token := range v.demo.Tokens() {
		if !slices.Contains(ids, token.MarketID) && len(ids) < n {
			ids = append(ids, token.MarketID)
		}
	}
	return ids
}

// calls returns how many requests the venue has received for paths that end with path.
func (v *venue) calls(path string) (n int) {
	for _, r := range v.log() {
		if strings.HasSuffix(r.path, path) {
			n++
		}
	}
	return n
}

// must is like ask, but fails the test if the query fails.
func (r *replica) must(t *testing.T, query string, header ...string) string {
	t.Helper()
	answer, err := r.ask(query, header...)
	if err != nil || strings.Contains(answer, `"errors"`) {
		t.Fatalf("%s\n%v\n%s", query, err, answer)
	}
	return answer
}

func quoted(ids []string) string { return `"` + strings.Join(ids, `","`) + `"` }

// TestFlights checks that three replicas share the calls for the same 100 uncached markets, so that the venue gets at most 5 calls.
func TestFlights(t *testing.T) {
	t.Parallel()
	const batch, attempts = 100, 5
	v := openVenue(t, demo.Config{Markets: batch*attempts + 50, Seed: 1, Latency: 150 * time.Millisecond})
	_, replicas := startThree(t, v)
	ids := v.markets(batch * attempts)
	var calls []int
	// On a busy machine, the claim of a replica in Redis can end before the venue responds. So it suffices that the replicas share
	// the calls in one of several attempts.
	for len(ids) > 0 && (len(calls) == 0 || calls[len(calls)-1] > 5) {
		query := fmt.Sprintf(`{ markets(marketIds: [%s]) { id question } }`, quoted(ids[:batch]))
		ids = ids[batch:]
		answers, before := make([]string, len(replicas)), v.calls("market-details")
		var g sync.WaitGroup
		for i, r := range replicas {
			g.Go(func() { answers[i], _ = r.ask(query) })
		}
		g.Wait()
		for i, answer := range answers {
			if answer != answers[0] || strings.Contains(answer, `"errors"`) || strings.Contains(answer, "null") {
				t.Errorf("replica %d answered %.300s, want the answer of replica 0, without errors and nulls", i, answer)
			}
		}
		calls = append(calls, v.calls("market-details")-before)
	}
	if calls[len(calls)-1] > 5 {
		t.Errorf("the attempts caused %v calls to the venue, want at most 5 calls in one attempt", calls)
	}
}

// TestFlightOfDeadReplica checks that another replica fetches the markets if the replica that claimed them in Redis dies during its
// call to the venue.
func TestFlightOfDeadReplica(t *testing.T) {
	t.Parallel()
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	server, replicas := startThree(t, v)
	arrived, release := v.hold("/market-details")
	defer release()
	query := fmt.Sprintf(`{ markets(marketIds: [%s]) { id } }`, quoted(v.markets(5)))
	var g sync.WaitGroup
	g.Go(func() { _, _ = replicas[0].ask(query) })
	claims := func() int { return len(strings.Fields(server.CLI(t, "KEYS", "*:lock"))) }
	// A replica claims markets before it calls the venue. The test does not look for the claims themselves, because they expire
	// after two seconds.
	<-arrived
	replicas[0].kill()
	began := time.Now()
	release()
	if answer := replicas[1].must(t, query); strings.Contains(answer, "null") {
		t.Errorf("got the answer %s, want all markets", answer)
	}
	// A claim ends after two seconds, and the venue responds at once. The limit is longer for a busy machine.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the read took %v, want at most 20 s", took)
	}
	eventually(t, "the markets are in Redis, and all claims have ended", func() bool { return len(strings.Fields(server.CLI(t, "KEYS", "*:market:*"))) >= 5 && claims() == 0 })
	replicas[2].must(t, query)
	if n := v.calls("market-details"); n > 2 {
		t.Errorf("the venue received %d calls for the markets, want at most 2: one by the dead replica, and one by another replica", n)
	}
	if n := claims(); n != 0 {
		t.Errorf("after all reads, Redis has %d claims, want 0", n)
	}
	g.Wait()
}

// TestFreshness checks that two replicas report the same age of a market that only one of them has fetched.
func TestFreshness(t *testing.T) {
	t.Parallel()
	const fresh = 15 * time.Second // longer than a busy machine needs for three requests
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	_, replicas := startThree(t, v, fmt.Sprint("--cache-market-fresh=", fresh), "--explain=on")
	query := fmt.Sprintf(`{ markets(marketIds: [%s]) { id freshness { receivedAt } } }`, quoted(v.markets(1)))
	readMarket := func(r *replica) (at time.Time, explained string) {
		answer := r.must(t, query, httpapi.ExplainHeader, "1")
		var body struct {
			Data struct {
				Markets []struct {
					Freshness struct{ ReceivedAt time.Time }
				}
			}
			Extensions struct{ Explain json.RawMessage }
		}
		if err := json.Unmarshal([]byte(answer), &body); err != nil || len(body.Data.Markets) != 1 {
			t.Fatalf("%v: %s", err, answer)
		}
		return body.Data.Markets[0].Freshness.ReceivedAt, string(body.Extensions.Explain)
	}
	first, fetched := readMarket(replicas[0])
	time.Sleep(3 * time.Second) // if a replica counts the age from its own read, the check below fails
	second, explained := readMarket(replicas[1])
	// Each replica reads the clock of Redis by a call that takes at most --shared-timeout. So the clock of a replica is wrong by at
	// most half of this timeout, and the times of two replicas differ by at most the timeout.
	if d := second.Sub(first).Abs(); d > time.Second {
		t.Errorf("the values of receivedAt on two replicas differ by %v, want at most a second", d)
	}
	if n := v.calls("market-details"); n != 1 {
		t.Errorf("the venue received %d calls, want 1", n)
	}
	_, kept := readMarket(replicas[1])
	for text, from := range map[string]string{fetched: `{"memory":0,"shared":0,"venue":1}`, explained: `{"memory":0,"shared":1,"venue":0}`, kept: `{"memory":1,"shared":0,"venue":0}`} {
		if !strings.Contains(text, `"from":`+from) {
			t.Errorf("the explanation does not say that the value is from %s: %s", from, text)
		}
	}
	time.Sleep(time.Until(first.Add(fresh + 200*time.Millisecond)))
	if third, _ := readMarket(replicas[2]); !third.After(first.Add(fresh)) {
		t.Errorf("at %v, a replica served a value from %v, want a value from after %v", time.Now(), third, first.Add(fresh))
	}
	if n := v.calls("market-details"); n != 2 {
		t.Errorf("after the value has expired, the venue has received %d calls, want 2", n)
	}
}

// TestValuesOfVenues checks that replicas share the values of two venues with equal ids, and that these values never meet in Redis, even
// if the first venues of the replicas differ.
func TestValuesOfVenues(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := openVenue(t, demo.Config{Markets: 50, Seed: 1}), openVenue(t, demo.Config{Markets: 50, Seed: 1, Other: 1})
	startPair := func(first, further *venue) *replica {
		file := further.file(t, "ODDSGRAPH_VENUE_PUBLIC_PER_MINUTE=0")
		return start(t, first, sharedFlags(server, "--venue-public-per-minute=0", "--cache-price-fresh=1h", "--cache-book-fresh=1h", "--more-venues="+file)...).waitConnected(t)
	}
	ids := a.markets(10)
	// read reads prices, books and markets of the venue whose ids begin with prefix.
	read := func(r *replica, prefix string) string {
		query := fmt.Sprintf(`{ markets(marketIds: [%s]) { marketId slug tokens { tokenId price { price } orderbook { bids { price size } } } } }`,
			quoted(strings.Fields(prefix+strings.Join(ids, " "+prefix))))
		answer := r.must(t, query)
		if n := strings.Count(answer, prefix+ids[0]+`"`); n != 1 {
			t.Errorf("the answer has the id %s%s %d times, want once", prefix, ids[0], n)
		}
		return strings.ReplaceAll(answer, prefix, "")
	}
	r := startPair(a, b)
	ofA, ofB := read(r, ""), read(r, "v:")
	if ofA == ofB {
		t.Fatalf("the venues have the same values: %.300s", ofA)
	}
	tokens := strings.Count(ofA+ofB, "tokenId")
	for kind, n := range map[string]int{"price": tokens, "book": tokens, "market": 2 * len(ids)} {
		eventually(t, "Redis has all values of the kind "+kind, func() bool { return len(strings.Fields(server.CLI(t, "KEYS", "*:"+kind+":*"))) == n })
	}
	calls := len(a.log()) + len(b.log())
	if same := startPair(a, b); read(same, "") != ofA || read(same, "v:") != ofB || len(a.log())+len(b.log()) != calls {
		t.Errorf("another replica answers otherwise, or makes %d calls, want none", len(a.log())+len(b.log())-calls)
	}
	if other := startPair(b, a); read(other, "") != ofB || read(other, "v:") != ofA {
		t.Error("a replica whose first venue is the further one of the others answers otherwise")
	}
}

// flush flushes the cached markets of a replica.
func (r *replica) flush(t *testing.T) {
	t.Helper()
	resp, err := client.Post(r.admin+"/cache/flush?kind=market", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the flush got the status %s, want 200", resp.Status)
	}
}

// TestFlushReachesReplicas checks that all replicas fetch a kind of data again after one replica has flushed it.
func TestFlushReachesReplicas(t *testing.T) {
	t.Parallel()
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	_, replicas := startThree(t, v)
	id := v.markets(1)
	query := fmt.Sprintf(`{ markets(marketIds: [%s]) { id question description } }`, quoted(id))
	for _, r := range replicas {
		r.must(t, query)
	}
	if err := v.demo.Reword(id[0], "another description"); err != nil {
		t.Fatal(err)
	}
	replicas[0].flush(t)
	for i, r := range replicas {
		eventually(t, fmt.Sprintf("replica %d shows the new description", i), func() bool {
			return strings.Contains(r.must(t, query), "another description")
		})
	}
}

// follow is like subscribe, with a subscription to the changes of a market.
func (r *replica) follow(t *testing.T, id string) (events func() int64) {
	t.Helper()
	return r.subscribe(t, fmt.Sprintf(`subscription { marketChanged(marketIds: [%q]) { __typename } }`, id))
}

// subscribe subscribes at a replica and waits for the first event. It returns a function that counts the events so far. The
// subscription ends with the test.
func (r *replica) subscribe(t *testing.T, query string, header ...string) (events func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := client.Do(post(ctx, r.url, query, append(header, "Accept", "text/event-stream")...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
	})
	var n atomic.Int64
	go func() {
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") && len(lines.Text()) > len("data: ") {
				n.Add(1)
			}
		}
	}()
	eventually(t, "the subscription has begun", func() bool { return n.Load() > 0 })
	return n.Load
}

// streamFlagAndMarket returns the flag that names the venue's stream, and the id of an open market.
func (v *venue) streamFlagAndMarket() (flag, id string) {
	for _, token := range v.demo.Tokens() {
		if token.Status == "OPEN" {
			id = token.MarketID
			break
		}
	}
	return "--stream-url=" + strings.Replace(v.URL, "http", "ws", 1) + demo.StreamPath, id
}

// TestChangeReachesReplicas checks that Redis no longer has the old state of a market after one replica has received a change.
func TestChangeReachesReplicas(t *testing.T) {
	t.Parallel()
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	flag, id := v.streamFlagAndMarket()
	server, replicas := startThree(t, v, flag)
	replicas[0].follow(t, id)
	query := fmt.Sprintf(`{ markets(marketIds: [%q]) { id status } }`, id)
	for _, r := range replicas {
		r.must(t, query)
	}
	if err := v.demo.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica that received the change shows the change", func() bool { return strings.Contains(replicas[0].must(t, query), "CLOSED") })
	late := start(t, v, sharedFlags(server, flag, "--venue-public-per-minute=0", "--venue-key-per-minute=0")...).waitConnected(t)
	if answer := late.must(t, query); !strings.Contains(answer, "CLOSED") {
		t.Errorf("a replica without the market in its own cache shows %s, want CLOSED", answer)
	}
}

// TestChangeDuringCall checks a call that returns the old state of a market. If another replica receives the change during this
// call, the calling replica must not share the old state.
func TestChangeDuringCall(t *testing.T) {
	t.Parallel()
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	flag, id := v.streamFlagAndMarket()
	_, replicas := startThree(t, v, flag)
	events := replicas[0].follow(t, id)
	replicas[0].flush(t)        // the subscription put the market into Redis
	time.Sleep(4 * time.Second) // the flush reaches the other replicas within one second, on a slow machine later

	query := fmt.Sprintf(`{ markets(marketIds: [%q]) { id status } }`, id)
	arrived, release := v.hold("market-details")
	var g sync.WaitGroup
	g.Go(func() {
		if answer := replicas[1].must(t, query); !strings.Contains(answer, "OPEN") {
			t.Errorf("the delayed response is %s, want the old state OPEN", answer)
		}
	})
	<-arrived
	fault := faults.Fault{Path: "/api/exchange/market-details", Kind: faults.Status, Status: http.StatusInternalServerError}
	if err := v.faults.Set([]faults.Fault{fault}); err != nil {
		t.Fatal(err)
	}
	before := events()
	if err := v.demo.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica that follows the market receives the change", func() bool { return events() > before })
	time.Sleep(3 * time.Second) // longer than the other replica's call to Redis, which times out after 1 s
	release()
	g.Wait()
	if err := v.faults.Set(nil); err != nil {
		t.Fatal(err)
	}
	if answer := replicas[2].must(t, query); !strings.Contains(answer, "CLOSED") {
		t.Errorf("a replica without the market in its own cache shows %s, want CLOSED", answer)
	}
	eventually(t, "the replica that follows the market shows the change", func() bool {
		answer, err := replicas[0].ask(query)
		return err == nil && strings.Contains(answer, "CLOSED")
	})
}

// TestSecrets checks that Redis receives and stores neither credentials nor the secret in --shared-secret-file.
func TestSecrets(t *testing.T) {
	t.Parallel()
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	server := tool.StartRedis(t, "--rdbcompression", "no") // compression would hide texts from the test
	server.OpenLedger(t, v.URL)
	const canary, fleetSecret = "canary7f3a9c51e2", "fleetsecretd41d8cd98f00b204e9800998ecf8427e"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(fleetSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	monitor := server.Monitor(t)

	const address = "0x1111111111111111111111111111111111111111"
	credentials := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"apiKey":"demo-3","secret":"demo","passphrase":"demo","note":%q}`, canary))
	var replicas []*replica
	for range 2 {
		replicas = append(replicas, start(t, v, sharedFlags(server, "--shared-secret-file="+secret, "--venue-credentials=header",
			"--stream-url=ws"+strings.TrimPrefix(v.URL, "http")+demo.StreamPath)...).waitConnected(t))
	}
	for _, r := range replicas {
		for range 2 {
			answer, err := r.ask(fmt.Sprintf(`{ user(address: %q) { balance { cashBalance } positions { nodes { id size } } } markets(marketIds: [%s]) { id question } }`, address, quoted(v.markets(3))),
				httpapi.CredentialsHeader, credentials)
			if err != nil || !strings.Contains(answer, `"cashBalance":"`) {
				t.Fatalf("%v: %s", err, answer)
			}
			time.Sleep(2500 * time.Millisecond) // until the cached user data have expired
		}
		account := r.subscribe(t, fmt.Sprintf(`subscription { balanceChanged(address: %q) { reason balance { cashBalance } } }`, address), httpapi.CredentialsHeader, credentials)
		prices := r.subscribe(t, fmt.Sprintf(`subscription { priceChanged(tokenIds: [%q]) { reason price { price } } }`, v.demo.Tokens()[0].TokenID))
		eventually(t, "the subscriptions to the account and to a price have events", func() bool { v.demo.Step(); return account() > 0 && prices() > 2 })
	}
	eventually(t, "values are shared", func() bool { return len(server.Records(t, "*:market:*")) > 0 })
	dump := monitor()
	keys := strings.Fields(server.CLI(t, "--scan"))
	for _, key := range keys {
		dump += key + server.CLI(t, "DUMP", key)
	}
	if len(keys) < 4 || !strings.Contains(dump, "question") && !strings.Contains(dump, "Question") {
		t.Fatalf("the dump of %d keys has no market, or there are fewer than 4 keys", len(keys))
	}
	if strings.Count(strings.Join(keys, " "), ":window:") < 2 {
		t.Errorf("Redis has the keys %q, want two with :window:, one of them for the credentials", keys)
	}
	for _, needle := range []string{canary, fleetSecret, credentials, "demo-3", address, "cashBalance"} {
		if strings.Contains(dump, needle) {
			t.Errorf("Redis received or stores %q", needle)
		}
	}
}
