package generic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// prefix is the start of all paths of the venue. A request whose path does not start with prefix fails the test.
	prefix = "/tenant/v2"
	wallet = market.Address("0x2222222222222222222222222222222222222222")
	canary = `{"apiKey":"canary-key-7f3a","secret":"canary/secret+9c=","passphrase":"canary \"phrase\"","extra":"canary-extra", "deep":{"list":["canary-\u0064eep",7300419265,null]}}`
)

// fakeVenue is an HTTP server with the handlers of a test. It records the requests.
type fakeVenue struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

// newVenue starts a venue. The keys of handlers are paths without the prefix. A request fails the test if its path is not in
// handlers or if its method is not GET.
func newVenue(t testing.TB, handlers map[string]http.HandlerFunc) *fakeVenue {
	t.Helper()
	v := &fakeVenue{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		v.requests = append(v.requests, r)
		v.mu.Unlock()
		h := handlers[strings.TrimPrefix(r.URL.Path, prefix)]
		if h == nil || !strings.HasPrefix(r.URL.Path, prefix) || r.Method != http.MethodGet {
			t.Errorf("unexpected request %s %s", r.Method, r.URL.Path)
			http.Error(w, "unexpected", http.StatusTeapot)
			return
		}
		h(w, r)
	}))
	t.Cleanup(v.Close)
	return v
}

// queries returns the decoded query string of each request, without address and credentials.
func (v *fakeVenue) queries() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]string, len(v.requests))
	for i, r := range v.requests {
		q := r.URL.Query()
		q.Del("address")
		q.Del("credentials")
		out[i], _ = url.QueryUnescape(q.Encode())
	}
	return out
}

func (v *fakeVenue) count() int { return len(v.queries()) }

func (v *fakeVenue) last() *http.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requests[len(v.requests)-1]
}

// client returns a client of the venue. The functions in edit may change the configuration of the client.
func (v *fakeVenue) client(t testing.TB, edit ...func(*Config)) *Client {
	t.Helper()
	return newClient(t, v.URL+prefix+"/", edit...)
}

func newClient(t testing.TB, base string, edit ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Config: rest.Config{BaseURL: base, Timeout: 10 * time.Second, Retries: -1}, Table: told}
	for _, f := range edit {
		f(&cfg)
	}
	c, err := New(cfg)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// told is the table of the venues of most tests, which take lists and options.
var told = Table{
	settingMarketID: "marketId", settingMarketIDs: "ids", settingMarketTokens: "tokenIds", settingSpreads: byTokenIDs,
	settingSearchOptions: yes, settingAccountOptions: yes,
}

// with returns a function that changes a table of the configuration.
func with(change func(t *Table)) func(*Config) { return func(cfg *Config) { change(&cfg.Table) } }

// undecided is a change of the configuration that decides nothing.
func undecided(cfg *Config) { cfg.Table = Table{} }

// answer returns a handler that responds with 200 and a JSON body.
func answer(body string) http.HandlerFunc { return answerWith(http.StatusOK, "application/json", body) }

func answerWith(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// everywhere returns a map from the path of every endpoint to the handler h.
func everywhere(h http.HandlerFunc) map[string]http.HandlerFunc {
	all := make(map[string]http.HandlerFunc, len(paths))
	for _, path := range paths {
		all[path] = h
	}
	return all
}

// asUser returns a call with the credentials in canary.
func asUser(t testing.TB) upstream.Call { return withCredentials(t, canary) }

// withCredentials returns a call with credentials in JSON.
func withCredentials(t testing.TB, credentials string) upstream.Call {
	t.Helper()
	c, err := market.ParseCredentials([]byte(credentials))
	must(t, err)
	return upstream.Call{Credentials: c}
}

// withPermit returns the call with the permit p.
func withPermit(call upstream.Call, p upstream.Permit) upstream.Call {
	call.Permit = p
	return call
}

// goldenFile reads a golden file of tests/testdata/venue/forms.
func goldenFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "tests", "testdata", "venue", "forms", filepath.FromSlash(name)+".json"))
	must(t, err)
	return string(b)
}

// goldenFiles returns the names of the golden files of an endpoint.
func goldenFiles(t testing.TB, endpoint string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "tests", "testdata", "venue", "forms", endpoint, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files of %s: %v", endpoint, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	return files
}

// recordingObserver is an Observer that records the calls and the drift that the client reports.
type recordingObserver struct {
	mu    sync.Mutex
	drift []string
	calls []string
}

func (d *recordingObserver) Call(c upstream.HTTPCall, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf("%s %d %d %s", c.Endpoint, c.Keys, c.Status, c.Outcome))
}

func (d *recordingObserver) Drift(endpoint, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drift = append(d.drift, endpoint+": "+what)
}

func (d *recordingObserver) driftText() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.drift, ", ")
}

func date(t testing.TB, s string) market.Date {
	t.Helper()
	d, err := market.ParseDate(s)
	must(t, err)
	return d
}

// The show functions write values as text. The text of a missing value is "-".

func showDecimal(d *market.Decimal) string {
	if d == nil {
		return "-"
	}
	return d.String()
}

func showTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339Nano)
}

func showBool(b *bool) string {
	if b == nil {
		return "-"
	}
	return fmt.Sprint(*b)
}

func showText(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func showResults[T any](results []upstream.Result[*T], show func(*T) string) string {
	var lines []string
	for _, r := range results {
		switch {
		case r.Err != nil:
			lines = append(lines, string(market.CodeOf(r.Err)))
		case r.Value == nil:
			lines = append(lines, "absent")
		default:
			lines = append(lines, show(r.Value))
		}
	}
	return strings.Join(lines, "\n")
}

func showPrice(p *market.Price) string {
	return strings.Join([]string{p.TokenID, p.Price.String(), string(p.Basis), showTime(p.Timestamp)}, " ")
}

// fromBook is the end of the text of a spread that the client computed from an order book.
const fromBook = " of the book"

func showSpread(s *market.Spread) string {
	text := strings.Join([]string{s.TokenID, showDecimal(s.BestBid), showDecimal(s.BestAsk), showDecimal(s.Spread), showTime(s.Timestamp)}, " ")
	if s.FromBook {
		text += fromBook
	}
	return text
}

func showBook(b *market.Book) string {
	side := func(levels []market.Level) string {
		var s []string
		for _, l := range levels {
			s = append(s, l.Size.String()+"@"+l.Price.String())
		}
		return "[" + strings.Join(s, " ") + "]"
	}
	return fmt.Sprintf("%s %s %s spread %s at %s epoch %s seq %d hash %s depth %d", b.TokenID, side(b.Bids.Levels()), side(b.Asks.Levels()),
		showDecimal(b.Spread), showTime(b.Timestamp), showText(b.Epoch), b.Seq, showText(b.Hash), b.Depth)
}

func showHistory(h *market.PriceHistory) string {
	var s []string
	for _, p := range h.Points {
		s = append(s, showTime(p.Timestamp)+" "+p.Price.String()+" "+showDecimal(p.Volume))
	}
	return strings.Join(s, "\n")
}

// marketText is the text of a market.
type marketText struct{ strings.Builder }

// line adds a line. If all values are missing, line adds nothing.
func (b *marketText) line(name string, values ...string) {
	if strings.Trim(strings.Join(values, ""), "-") != "" {
		fmt.Fprintf(b, "%s: %s\n", name, strings.Join(values, " | "))
	}
}

func (b *marketText) end(summary bool) string {
	if summary {
		b.WriteString("summary\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func showMarket(m *market.Market) string {
	var b marketText
	b.line("market", m.MarketID, showText(m.Slug), showText(m.Question), showText(m.GroupItemTitle))
	b.line("about", showText(m.Description), showText(m.Image), showText(m.Category), showText(strings.Join(m.Tags, ",")))
	b.line("status", string(m.Status), showText(m.StatusRaw), showBool(m.AcceptingOrders))
	b.line("times", showTime(m.StartsAt), showTime(m.EndsAt), showTime(m.UpdatedAt))
	b.line("figures", showDecimal(m.Volume), showDecimal(m.Volume24h), showDecimal(m.Liquidity), showDecimal(m.TickSize), showDecimal(m.MinOrderSize))
	b.line("event", showText(m.EventID), showText(m.EventSlug), showText(m.EventTitle))
	for _, o := range m.Outcomes {
		b.line("outcome", o.TokenID, o.Label, showDecimal(o.Price), showBool(o.Winner))
	}
	if r := m.Resolution; r != nil {
		b.line("resolution", showText(r.Outcome), showTime(r.ResolvedAt), showText(r.Source))
	}
	return b.end(m.Summary)
}

func showBalance(b *market.Balance) string {
	return fmt.Sprintf("portfolio %s cash %s positions %s total %s at %s", showDecimal(b.PortfolioValue), showDecimal(b.CashBalance),
		showDecimal(b.PositionsValue), showDecimal(b.TotalValue), showTime(b.UpdatedAt))
}

func showPositions(list []market.Position) string {
	var s []string
	for _, p := range list {
		s = append(s, strings.Join([]string{p.MarketID, showText(p.TokenID), p.Outcome, p.Size.String(), showDecimal(p.AvgPrice),
			showDecimal(p.CurrentPrice), showDecimal(p.UnrealizedPnl)}, " "))
	}
	return strings.Join(s, "\n")
}

func showOrders(list []market.Order) string {
	var s []string
	for _, o := range list {
		s = append(s, strings.Join([]string{o.OrderID, o.MarketID, showText(o.TokenID), string(o.Side) + "(" + o.SideRaw + ")", o.Outcome,
			o.Price.String(), o.Size.String(), o.FilledSize.String(), string(o.Status) + "(" + o.StatusRaw + ")", showTime(o.CreatedAt)}, " "))
	}
	return strings.Join(s, "\n")
}

func showTrades(p *queries.TradePage) string {
	s := []string{fmt.Sprintf("next %s total %s", showNext(p.Next), showTotal(p.Total))}
	for _, t := range p.Trades {
		s = append(s, strings.Join([]string{showText(t.TradeID), showText(t.MarketID), showText(t.TokenID), showText(t.Outcome),
			string(t.Side) + "(" + t.SideRaw + ")", t.Price.String(), t.Size.String(), showDecimal(t.Fee), showTime(t.Timestamp),
			showText(t.TransactionHash)}, " "))
	}
	return strings.Join(s, "\n")
}

func showRecords(p *queries.HistoryPage) string {
	s := []string{fmt.Sprintf("next %s total %s", showNext(p.Next), showTotal(p.Total))}
	for _, h := range p.Records {
		s = append(s, strings.Join([]string{showText(h.ID), string(h.Kind) + "(" + h.KindRaw + ")", showTime(h.Timestamp),
			showDecimal(h.Amount), showText(h.MarketID), showText(h.TokenID), showText(h.Outcome), showText(string(h.Side)),
			showDecimal(h.Price), showDecimal(h.Size), showText(h.TransactionHash)}, " "))
	}
	return strings.Join(s, "\n")
}

// showNext returns the cursor or the offset in a page token.
func showNext(token string) string {
	p, err := parsePageToken(upstream.EndpointTrades, token)
	switch {
	case err != nil:
		return err.Error()
	case p.Offset > 0:
		return fmt.Sprint("offset ", p.Offset)
	}
	return showText(p.Cursor)
}

func showTotal(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// assertEqual fails the test if two texts differ.
func assertEqual(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
