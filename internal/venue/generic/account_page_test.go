package generic

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/tests/tool"
)

// pageCase describes a venue with a list of trades or history records, and a sequence of reads of this list.
type pageCase struct {
	name string
	// accepts contains the parameters that the venue accepts in addition to address and credentials.
	accepts []string
	rows    int
	// size is the maximum number of rows on a page. If size is 0, all rows are on one page.
	size  int
	reads []pageRead
}

// pageRead is one read of a page.
type pageRead struct {
	// after is the time by which the clock advances before the read.
	after    time.Duration
	marketID string
	// next is true if the read continues after the page of the previous read.
	next bool
	// rows is the expected number of rows. more is true if the page must have the token of a next page.
	rows int
	more bool
	// parameters contains the expected parameters of each call of the read.
	parameters string
}

var pageCases = []pageCase{
	{
		"accepts only the address", nil, 53, 0,
		[]pageRead{
			{rows: 53, more: true, parameters: "-"},
			{next: true, rows: 0, parameters: "offset"}, // the first read returned all 53 rows
			{rows: 53, parameters: "-"},
			{marketID: "M1", rows: 26, parameters: "marketId | -"},
			{marketID: "M1", rows: 26, parameters: "-"},
			{after: relearnAfter, marketID: "M1", rows: 26, more: true, parameters: "marketId | -"},
		},
	},
	{
		"pages by cursor", []string{"limit", "cursor", "marketId"}, 53, 20,
		[]pageRead{
			{rows: 20, more: true, parameters: "-"},
			{next: true, rows: 5, more: true, parameters: "limit cursor"},
			{rows: 5, more: true, parameters: "limit"},
			{marketID: "M1", rows: 5, more: true, parameters: "limit marketId"},
		},
	},
	{
		"pages by cursor and refuses a page size", []string{"cursor"}, 53, 20,
		[]pageRead{
			{rows: 20, more: true, parameters: "-"},
			{next: true, rows: 20, more: true, parameters: "limit cursor | cursor"},
			{next: true, rows: 13, parameters: "cursor"},
			{rows: 20, more: true, parameters: "-"},
			{after: relearnAfter, rows: 20, more: true, parameters: "limit | -"},
		},
	},
}

// serve sends a page of rows, or an error if the request has a parameter that the venue does not accept.
func (p *pageCase) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name := range q {
		if name != "address" && name != "credentials" && !slices.Contains(p.accepts, name) {
			badParameter(w, r)
			return
		}
	}
	size := p.size
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil {
		size = min(size, limit)
	}
	from, _ := strconv.Atoi(q.Get("cursor"))
	to := p.rows
	next := ""
	if size > 0 && from+size < p.rows {
		to = from + size
		next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
	}
	var rows []string
	for i := from; i < to; i++ {
		id := i % 2
		if q.Has("marketId") {
			id = 1
		}
		rows = append(rows, fmt.Sprintf(`{"tradeId":"T%d","id":"T%d","marketId":"M%d","type":"TRADE","side":"BUY","price":0.5,"size":1,"timestamp":%d}`, i, i, id, 1_763_632_800-i))
	}
	answer(`{"trades":[`+strings.Join(rows, ",")+`]`+next+`}`)(w, r)
}

// TestAccountPagesLearnParameters checks that the client does not send a refused parameter again until relearnAfter has passed. If
// a venue sends more rows than requested, the client must return all of these rows.
func TestAccountPagesLearnParameters(t *testing.T) {
	for _, test := range pageCases {
		for _, list := range []string{"trades", "history"} {
			t.Run(test.name+"/"+list, func(t *testing.T) {
				v := newVenue(t, everywhere(test.serve))
				clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
				c := v.client(t, func(cfg *Config) { cfg.Clock = clock })
				asked, token := 0, ""
				for i, read := range test.reads {
					if list == "history" && read.marketID != "" {
						continue
					}
					clock.Advance(read.after)
					if !read.next {
						token = ""
					}
					rows := 0
					if list == "trades" {
						page, err := c.Trades(asUser(t), wallet, queries.Trades{MarketID: read.marketID, Limit: 5, Page: token})
						must(t, err)
						rows, token = len(page.Trades), page.Next
					} else {
						page, err := c.History(asUser(t), wallet, queries.History{Limit: 5, Page: token})
						must(t, err)
						rows, token = len(page.Records), page.Next
					}
					if rows != read.rows || (token != "") != read.more {
						t.Errorf("read %d returned %d rows and the next token %q, want %d rows and a next token: %v", i, rows, token, read.rows, read.more)
					}
					calls := v.parameters(asked)
					asked += len(calls)
					assertEqual(t, fmt.Sprint("read ", i, ": ", sortedWords(calls)), fmt.Sprint("read ", i, ": ", sortedWords(strings.Split(read.parameters, " | "))))
				}
			})
		}
	}
}

// sortedWords sorts the words of each text and then joins the texts.
func sortedWords(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		words := strings.Fields(text)
		slices.Sort(words)
		out[i] = strings.Join(words, " ")
	}
	return strings.Join(out, " | ")
}

// TestSearchWithoutOptions checks that a search works if the venue accepts neither a sort nor a page size. A search must return an
// error if its rows have another order than requested, or if the venue refuses its filter.
func TestSearchWithoutOptions(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		q, _ := url.ParseQuery(r.URL.RawQuery)
		if len(q) != 1 || !q.Has("q") {
			badParameter(w, r)
			return
		}
		var rows []string
		for i := 1; i < 4; i++ {
			rows = append(rows, fmt.Sprintf(`{"marketId":"M%d","question":"?","volume":%d,"outcomes":[{"tokenId":"%d","outcome":"YES"}]}`, i, i, i))
		}
		answer("["+strings.Join(rows, ",")+"]")(w, r)
	}))
	clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	c := v.client(t, func(cfg *Config) { cfg.Clock = clock })
	for i, read := range []struct {
		query queries.Search
		code  market.Code
		rows  int
		calls string
	}{
		{queries.Search{Text: "x", Sort: queries.SortRelevance, Direction: queries.Descending}, "", 3, "limit order q sort | q"},
		{queries.Search{Text: "x", Sort: queries.SortVolume, Direction: queries.Ascending}, "", 3, "q"},
		{queries.Search{Text: "x", Sort: queries.SortVolume, Direction: queries.Descending}, market.CodeUnsupported, 0, "q"},
		{queries.Search{Text: "x", Category: "c"}, market.CodeUpstreamBadResponse, 0, "category q"},
	} {
		before := v.count()
		page, err := c.Search(t.Context(), read.query)
		if market.CodeOf(err) != read.code || err == nil && len(page.Markets) != read.rows {
			t.Errorf("read %d returned the page %+v and the error %v, want %d markets and the code %q", i, page, err, read.rows, read.code)
		}
		assertEqual(t, sortedWords(v.parameters(before)), read.calls)
	}
	clock.Advance(relearnAfter)
	before := v.count()
	if _, err := c.Search(t.Context(), queries.Search{Text: "x"}); err != nil || v.count() != before+2 {
		t.Errorf("after relearnAfter, the search returned the error %v after %d calls, want 2 calls", err, v.count()-before)
	}
}

// TestRefusedSearchIsNotRepeated checks that a search that the venue refuses is sent once, if the venue has accepted the same sort and
// page size before. After relearnAfter without such a search, the client tries again whether they are the reason of the refusal.
func TestRefusedSearchIsNotRepeated(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Has("endsBefore") || q.Get("limit") == "100" {
			badParameter(w, r)
			return
		}
		answer(`{"markets":[]}`)(w, r)
	}))
	clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	c := v.client(t, func(cfg *Config) { cfg.Clock = clock })
	bad := queries.Search{Text: "x", Sort: queries.SortVolume, Direction: queries.Descending, EndsBefore: queries.At(time.Unix(1_800_000_000, 0))}
	good, large, another := bad, bad, bad
	good.EndsBefore, large.EndsBefore = queries.Bound{}, queries.Bound{}
	large.Limit, another.Direction = 100, queries.Ascending
	for i, read := range []struct {
		q     queries.Search
		after time.Duration
		ok    bool
		calls int
	}{
		{bad, 0, false, 2}, // the sort or the page size may be the reason
		{good, 0, true, 1},
		{bad, relearnAfter - 1, false, 1},
		{another, 0, false, 2},
		{bad, 1, false, 2},
		{good, 0, true, 1},
		{bad, 0, false, 1},
		{large, 0, true, 2}, // the page size is the reason
	} {
		clock.Advance(read.after)
		before := v.count()
		if _, err := c.Search(t.Context(), read.q); (err == nil) != read.ok || v.count()-before != read.calls {
			t.Errorf("search %d made %d calls and returned the error %v, want %d calls and success: %t", i, v.count()-before, err, read.calls, read.ok)
		}
	}
}
