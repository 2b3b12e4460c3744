package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/app"
	"oddsgraph/graph"
	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/control"
	"oddsgraph/internal/demo/kalshi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/resolvers"
	"oddsgraph/tests/tool"
)

// inMemory maps addresses to servers in this process. It connects services and venues in a synctest bubble.
type inMemory map[string]*app.Server

// RoundTrip implements http.RoundTripper.
func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if m[r.URL.Host] == nil {
		return nil, errors.New("the connection is refused")
	}
	return (&direct{m[r.URL.Host].HTTP.Handler}).RoundTrip(r)
}

// Dial implements stream.Dialer.
func (m inMemory) Dial(ctx context.Context, address string, header http.Header) (stream.Conn, error) {
	to, err := url.Parse(address)
	if err != nil || m[to.Host] == nil {
		return nil, errors.Join(err, errors.New("the connection is refused"))
	}
	return (&pipeDialer{m[to.Host].Listener.(*pipes)}).Dial(ctx, address, header)
}

// trio are three services that read a venue: one has only this venue, one has it as the further venue "v", and one has it as the first
// of two venues. All three read the simulator of the first.
type trio struct {
	driver                string
	alone, further, first *service
	random                *rand.Rand
	schema                *ast.Schema
	venue                 control.Venue
	ids                   map[string][]string // identifiers of the venue by the name of the argument
	// nodes are pairs of equal global ids, of the services alone and further.
	nodes [][2]string
	paged string // path of the connection that the present document pages through, or ""
}

func startTrio(t *testing.T, driver string, options ...string) *trio {
	t.Helper()
	time.Sleep(time.Until(startTime)) // see startOverSimulator
	servers := inMemory{}
	start := func(rig func(*app.Wiring), args ...string) *service {
		t.Helper()
		args = append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0", "--demo-still"}, args...)
		s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
			w.Unlimited = true // the wait of one service would change the times in the responses of the others
			w.Client.Transport, w.Stream.Dial = servers, servers
			w.Reads.Memory = 256 << 20 // nothing is evicted, although venues share the memory
			rig(w)
		}, args...)
		s.callDirectly()
		servers[s.Demo.Addr().String()] = s.Demo.Server
		s.serveUntilEnd(t)
		return s
	}
	file := func(name string, lines ...string) string {
		path := filepath.Join(t.TempDir(), name+".env")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--more-venues=" + path
	}
	w := &trio{driver: driver, random: rand.New(rand.NewPCG(47, 1)), ids: map[string][]string{}}
	w.schema = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{}}).Schema()
	flags := append([]string{"--demo-driver=" + driver, "--venue-driver=" + driver}, options...)
	settings := demo.Config{Markets: 1200, Seed: 1, Clock: market.SystemClock{}}
	var venue app.Wiring
	w.alone = start(func(c *app.Wiring) { venue = *c }, flags...)
	switch embedded := w.alone.Demo; {
	case embedded.Polymarket != nil:
		w.venue = embedded.Polymarket
	case embedded.Kalshi != nil && len(options) > 0: // like the embedded simulator, but without its rate limit
		w.venue = kalshi.New(kalshi.Config{Demo: settings, TokensPerSecond: 1 << 20})
		embedded.HTTP.Handler = w.venue
	case embedded.Kalshi != nil:
		w.venue = embedded.Kalshi
	default:
		w.venue = embedded.Venue
	}
	lines := []string{
		"ODDSGRAPH_VENUE_DRIVER=" + driver, "ODDSGRAPH_VENUE_URL=" + venue.Client.BaseURL,
	}
	if driver == "generic" {
		lines = append(lines, "ODDSGRAPH_VENUE_CURRENCY="+demo.Currency)
	}
	w.further = start(func(c *app.Wiring) {
		if c.Reads.Name != "" {
			c.Client.Key, c.Client.Table, c.Stream.URL = venue.Client.Key, venue.Client.Table, venue.Stream.URL
		}
	}, "--demo-markets=10", file("v", lines...))
	w.first = start(func(c *app.Wiring) {
		if c.Reads.Name == "" {
			c.Client.BaseURL, c.Client.Key, c.Stream.URL = venue.Client.BaseURL, venue.Client.Key, venue.Stream.URL
		}
	}, append(flags, file("other", "ODDSGRAPH_VENUE_DRIVER=generic", "ODDSGRAPH_VENUE_URL=http://127.0.0.1:1"))...)
	for _, token := range w.alone.Demo.Venue.Tokens() {
		for name, id := range map[string]string{"tokenId": token.TokenID, "marketId": token.MarketID, "slug": token.Slug, "eventId": token.EventID} {
			if simulated := w.alone.simulatedID(id); simulated != "" {
				id = simulated
			}
			w.ids[name] = append(w.ids[name], id)
		}
	}
	return w
}

// Marks in the text of a request. own stands before each identifier of the venue, and only surrounds what only the service further
// gets. The index of a pair in trio.nodes is between two marks.
const own, only, mark = "§", "¶", "¤"

var onlyFurther, nodeIndex, searchOrUser = regexp.MustCompile(only + "[^" + only + "]*" + only), regexp.MustCompile(mark + `\d+` + mark), regexp.MustCompile(`(searchMarkets|searchEvents|user)\(`)

// venueArguments writes the arguments that choose the venue into a document.
func venueArguments(document string) string {
	return searchOrUser.ReplaceAllStringFunc(document, func(call string) string {
		if call == "user(" {
			return call + only + `venue: "v" ` + only
		}
		return call + only + `venues: ["v"] ` + only
	})
}

// forAlone returns the text of a request to the services alone and first.
func (w *trio) forAlone(request string) string {
	return w.nodesOf(strings.ReplaceAll(onlyFurther.ReplaceAllString(request, ""), own, ""), 0)
}

// forFurther returns the text of a request to the service further.
func (w *trio) forFurther(request string) string {
	return w.nodesOf(strings.ReplaceAll(strings.ReplaceAll(request, only, ""), own, "v:"), 1)
}

func (w *trio) nodesOf(request string, i int) string {
	return nodeIndex.ReplaceAllStringFunc(request, func(index string) string {
		var n int
		_, _ = fmt.Sscan(strings.Trim(index, mark), &n)
		return w.nodes[n][i]
	})
}

// namesVenue matches the name of the further venue in a text.
var namesVenue = regexp.MustCompile(`\bv:`)

// plain returns a response without what may differ: the name of the venue in front of its identifiers, the values of cursors, and the
// order of errors. It decodes global ids. In a response of the service further, every identifier must have the name of the venue.
func (w *trio) plain(v any, key string, further bool, ids *[]string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "venue" && name != "locations" {
				out[name] = w.plain(v[name], name, further, ids)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.plain(v[i], key, further, ids)
		}
		if key == "errors" {
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(asJSON(a), asJSON(b)) })
		}
		return out
	case string:
		unnamed := further && v != "" && !strings.HasPrefix(v, "v:")
		switch key {
		case "startCursor", "endCursor", "cursor":
			return key
		case "id", "closedPositionIds", "closedOrderIds":
			*ids = append(*ids, v)
			v = tradeDigest.ReplaceAllString(decoded(v), "Trade\nv:digest")
			unnamed = further && !strings.Contains(v, "\nv:")
			v = strings.ReplaceAll(v, "\nv:", "\n")
		case "marketId", "tokenId", "eventId", "slug", "tradeId":
		default:
			unnamed = false
		}
		if unnamed {
			return "without the name of the venue: " + v
		}
		return namesVenue.ReplaceAllString(v, "")
	}
	return v
}

// tradeDigest matches the global id of a trade whose key is a digest, which contains the identifier of the market.
var tradeDigest = regexp.MustCompile(`^Trade\n(v:)?[0-9a-f]{32}`)

// decoded returns a global id without encoding. A part of the id may be a global id as well.
func decoded(id string) string {
	_, local := model.SplitVenue(id)
	text, err := base64.RawURLEncoding.DecodeString(local)
	if err != nil || !bytes.Contains(text, []byte("\n")) {
		return id
	}
	parts := strings.Split(string(text), "\n")
	for i := range parts[1:] {
		parts[i+1] = decoded(parts[i+1])
	}
	return strings.Join(parts, "\n")
}

// served is the response of a service, and the requests that the venue received meanwhile, by path.
type served struct {
	response
	made  string
	value any
	ids   []string
}

func (w *trio) send(t *testing.T, s *service, request, key string, cost bool) (out served) {
	t.Helper()
	requests := func() map[string]int64 {
		synctest.Wait()
		return w.venue.Stats().Requests
	}
	before := requests()
	r := s.request(t, request, key)
	if cost {
		r.Header.Set(httpapi.CostHeader, "1") // the response cache answers no such request
	}
	out.response = s.do(t, r)
	made := requests()
	maps.DeleteFunc(made, func(path string, n int64) bool { return n == before[path] })
	for path := range made {
		made[path] -= before[path]
	}
	out.made = fmt.Sprint(made)
	decode(t, out.body, &out.value)
	return out
}

// difference returns two texts from the place where they begin to differ.
func difference(alone, other string) string {
	i := 0
	for i < min(len(alone), len(other)) && alone[i] == other[i] {
		i++
	}
	i = max(i-200, 0)
	return fmt.Sprintf("\n%.500s from the venue alone, and\n%.500s", alone[i:], other[i:])
}

// compare sends a request to all services and compares the responses. It returns those of alone and further.
func (w *trio) compare(t *testing.T, name, request, key string) (alone, further served) {
	t.Helper()
	cost := w.random.IntN(2) == 0
	alone = w.send(t, w.alone, w.forAlone(request), key, cost)
	further = w.send(t, w.further, w.forFurther(request), key, cost)
	first := w.send(t, w.first, w.forAlone(request), key, cost)
	if first.status != alone.status || first.body != alone.body || first.made != alone.made {
		t.Fatalf("%s %s: with a second venue, the response differs: %s", name, w.forAlone(request), difference(alone.body+alone.made, first.body+first.made))
	}
	a, f := asJSON(w.plain(alone.value, "", false, &alone.ids)), asJSON(w.plain(further.value, "", true, &further.ids))
	if a != f || alone.status != further.status || alone.made != further.made {
		t.Fatalf("%s %s: got %s", name, w.forFurther(request), difference(a+alone.made, f+further.made))
	}
	for i := range min(len(alone.ids), len(further.ids), 500-len(w.nodes)) {
		w.nodes = append(w.nodes, [2]string{alone.ids[i], further.ids[i]})
	}
	return alone, further
}

// TestSeveralVenuesEqualOne compares the responses of three services to the examples and to random documents: that of a service with
// one venue, that of a service in which the venue is a further one, and that of a service in which it is the first of two.
func TestSeveralVenuesEqualOne(t *testing.T) {
	tool.CheckTier(t)
	documents := 150
	if tool.Nightly() {
		documents = 1000
	}
	for _, driver := range []string{"generic", "polymarket", "kalshi"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := startTrio(t, driver, "--demo-stream=false")
				w.compareExamples(t)
				for _, query := range []string{
					"{", "{ nope }", `{ market(by: { marketId: "" }) { slug } }`, "{ market { slug } }", `{ searchMarkets(first: 0) { totalCount } }`,
					`{ searchMarkets(first: 101) { totalCount } }`, `{ user(address: "x") { address } }`, `{ searchEvents(after: "x") { totalCount } }`,
					`{ node(id: "x") { id } }`, `{ tokens(tokenIds: []) { tokenId } }`, `query ($n: Int!) { searchMarkets(first: $n) { totalCount } }`,
				} {
					w.compare(t, "error", asJSON(vars{"query": venueArguments(query)}), anonymous)
				}
				for i := range documents {
					w.comparePages(t, fmt.Sprint("document ", i), w.document())
					// No account is 1.5 s to 2 s old when it is read, because each process chooses its fresh time in this range by chance.
					time.Sleep(time.Duration(w.random.IntN(12)) * 700 * time.Millisecond)
				}
				t.Logf("%d documents, %d global ids", documents, len(w.nodes))
			})
		})
	}
}

// comparePages compares the responses to a query, and those for up to two further pages.
func (w *trio) comparePages(t *testing.T, name, query string) {
	t.Helper()
	paged := w.paged
	body := func(cursor any) string { return asJSON(vars{"query": query, "variables": vars{"after": cursor}}) }
	if paged == "" {
		w.compare(t, name, body(nil), anonymous)
		return
	}
	request := body(nil)
	for range 3 {
		alone, further := w.compare(t, name, request, anonymous)
		cursors := [2]string{text(alone.value, "data."+paged+".pageInfo.endCursor"), text(further.value, "data."+paged+".pageInfo.endCursor")}
		if at(alone.value, "data."+paged+".pageInfo.hasNextPage") != true || cursors[1] == "" {
			return
		}
		w.nodes = append(w.nodes, cursors)
		request = body(fmt.Sprint(mark, len(w.nodes)-1, mark))
	}
}

func (w *trio) compareExamples(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("examples/*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var variables any
		decode(t, read(t, strings.TrimSuffix(file, "graphql")+"json"), &variables)
		variables = translateStrings(variables, w.alone.simulatedID)
		variables = translateStrings(variables, func(s string) string {
			for _, ids := range w.ids {
				if slices.Contains(ids, s) {
					return own + s
				}
			}
			return ""
		})
		query := read(t, file)
		if strings.Contains(query, "venues") || w.driver == "generic" && strings.Contains(query, "user(") {
			continue
		}
		w.compare(t, file, asJSON(vars{"query": venueArguments(query), "variables": variables}), anonymous)
	}
}
