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
	"oddsgraph/tests/tool"
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

// lines returns the texts of the elements of a list, each on a line.
func lines[T any](list []T, show func(T) string) string {
	var out []string
	for _, v := range list {
		out = append(out, show(v))
	}
	return strings.Join(out, "\n")
}

func showResults[T any](results []upstream.Result[*T], show func(*T) string) string {
	return lines(results, func(r upstream.Result[*T]) string {
		switch {
		case r.Err != nil:
			return string(market.CodeOf(r.Err))
		case r.Value == nil:
			return "absent"
		}
		return show(r.Value)
	})
}

func showPrice(p *market.Price) string { return tool.Line(p.TokenID, p.Price, p.Basis, p.Timestamp) }

// fromBook is the end of the text of a spread that the client computed from an order book.
const fromBook = " of the book"

func showSpread(s *market.Spread) string {
	text := tool.Line(s.TokenID, s.BestBid, s.BestAsk, s.Spread, s.Timestamp)
	if s.FromBook {
		text += fromBook
	}
	return text
}

func showBook(b *market.Book) string {
	side := func(levels []market.Level) string {
		return "[" + strings.ReplaceAll(lines(levels, func(l market.Level) string { return l.Size.String() + "@" + l.Price.String() }), "\n", " ") + "]"
	}
	return tool.Line(b.TokenID, side(b.Bids.Levels()), side(b.Asks.Levels()), "spread", b.Spread, "at", b.Timestamp, "epoch", b.Epoch, "seq", b.Seq,
		"hash", b.Hash, "depth", b.Depth)
}

func showHistory(h *market.PriceHistory) string {
	return lines(h.Points, func(p market.PricePoint) string { return tool.Line(p.Timestamp, p.Price, p.Volume) })
}

// marketText is the text of a market.
type marketText struct{ strings.Builder }

// line adds a line. If all values are missing, line adds nothing.
func (b *marketText) line(name string, values ...any) {
	text := strings.ReplaceAll(lines(values, tool.Text), "\n", " | ")
	if strings.Trim(text, "-| ") != "" {
		fmt.Fprintf(b, "%s: %s\n", name, text)
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
	b.line("market", m.MarketID, m.Slug, m.Question, m.GroupItemTitle)
	b.line("about", m.Description, m.Image, m.Category, strings.Join(m.Tags, ","))
	b.line("status", m.Status, m.StatusRaw, m.AcceptingOrders)
	b.line("times", m.StartsAt, m.EndsAt, m.UpdatedAt)
	b.line("figures", m.Volume, m.Volume24h, m.Liquidity, m.TickSize, m.MinOrderSize)
	b.line("event", m.EventID, m.EventSlug, m.EventTitle)
	for _, o := range m.Outcomes {
		b.line("outcome", o.TokenID, o.Label, o.Price, o.Winner)
	}
	if r := m.Resolution; r != nil {
		b.line("resolution", r.Outcome, r.ResolvedAt, r.Source)
	}
	return b.end(m.Summary)
}

func showBalance(b *market.Balance) string {
	return tool.Line("portfolio", b.PortfolioValue, "cash", b.CashBalance, "positions", b.PositionsValue, "total", b.TotalValue, "at", b.UpdatedAt)
}

func showPosition(p market.Position) string {
	return tool.Line(p.MarketID, p.TokenID, p.Outcome, p.Size, p.AvgPrice, p.CurrentPrice, p.UnrealizedPnl)
}

func showOrder(o market.Order) string {
	return tool.Line(o.OrderID, o.MarketID, o.TokenID, string(o.Side)+"("+o.SideRaw+")", o.Outcome, o.Price, o.Size, o.FilledSize,
		string(o.Status)+"("+o.StatusRaw+")", o.CreatedAt)
}

func showTrades(p *queries.TradePage) string {
	return showPage(p.Next, p.Total, p.Trades, func(t market.Trade) string {
		return tool.Line(t.TradeID, t.MarketID, t.TokenID, t.Outcome, string(t.Side)+"("+t.SideRaw+")", t.Price, t.Size, t.Fee, t.Timestamp, t.TransactionHash)
	})
}

func showRecords(p *queries.HistoryPage) string {
	return showPage(p.Next, p.Total, p.Records, func(h market.HistoryRecord) string {
		return tool.Line(h.ID, string(h.Kind)+"("+h.KindRaw+")", h.Timestamp, h.Amount, h.MarketID, h.TokenID, h.Outcome, h.Side, h.Price, h.Size,
			h.TransactionHash)
	})
}

func showPage[T any](next string, total *int, rows []T, show func(T) string) string {
	head := tool.Line("next", showNext(next), "total", total)
	if len(rows) > 0 {
		head += "\n"
	}
	return head + lines(rows, show)
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
	return tool.Text(p.Cursor)
}

// assertEqual fails the test if two texts differ.
func assertEqual(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
