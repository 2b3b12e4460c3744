package generic

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestTable checks that ParseTable reads what String writes, and refuses other settings and values.
func TestTable(t *testing.T) {
	const all = "market-id:id,market-ids:conditionIds,market-slug:s,market-token:tokenId,market-tokens:none,spreads:books," +
		"search-options:no,search-paging:offset,account-options:yes,account-paging:none,max-url:1024"
	table, err := ParseTable(strings.Split(all, ","))
	must(t, err)
	assertEqual(t, table.String(), all)
	if table.lacks(settingMarketID, settingMaxURL) {
		t.Error("the table lacks settings")
	}
	for _, bad := range []string{"", "spreads", "spreads:", "spreads:many", "market-id:", "market-id:a b", "max-url:255", "max-url:65537", "max-url:x", "other:1", "search-options:none", "Spreads:books"} {
		if _, err := ParseTable([]string{"market-id:id", bad}); err == nil {
			t.Errorf("ParseTable accepts %q", bad)
		}
	}
	if table, err = ParseTable([]string{"spreads:tokenIds", "spreads:books"}); err != nil || table.String() != "spreads:books" {
		t.Errorf("of two values, ParseTable returns %q and the error %v, want the last", table, err)
	}
}

func badParameter(w http.ResponseWriter, r *http.Request) {
	answerWith(http.StatusBadRequest, "application/json", `{"success":false,"message":"unknown parameter"}`)(w, r)
}

// servePage sends a page of a list from the requested offset, and the text in rest after the page. The page has at most size rows.
// If the request has a limit, the limit replaces size. A limit above 500 counts as 500.
func servePage(w http.ResponseWriter, r *http.Request, rows, size int, rest string) {
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("offset"))
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil {
		size = min(limit, 500)
	}
	from = min(from, rows)
	listOfUser(w, r, rowsJSON(from, min(from+size, rows)), rest)
}

// unpaged serves all rows at once, and refuses every parameter that the documentation does not show. ignoring does not refuse them.
func unpaged(w http.ResponseWriter, r *http.Request, rows int) {
	if q := r.URL.Query(); q.Has("limit") || q.Has("offset") || q.Has("cursor") {
		badParameter(w, r)
		return
	}
	listOfUser(w, r, rowsJSON(0, rows), "")
}

func ignoring(w http.ResponseWriter, r *http.Request, rows int) {
	listOfUser(w, r, rowsJSON(0, rows), "")
}

func byOffsets(w http.ResponseWriter, r *http.Request, rows int) { servePage(w, r, rows, 100, "") }

// byCursors sends cursors that are texts with special characters, or numbers.
func byCursors(w http.ResponseWriter, r *http.Request, rows int) {
	from, _ := strconv.Atoi(strings.TrimSuffix(r.URL.Query().Get("cursor"), "/b+=="))
	to, next := min(from+100, rows), ""
	switch {
	case to < rows && from == 0:
		next = fmt.Sprintf(`,"nextCursor":"%d/b+=="`, to)
	case to < rows:
		next = fmt.Sprintf(`,"nextCursor":%d`, to)
	}
	listOfUser(w, r, rowsJSON(from, to), fmt.Sprintf(`,"count":%d%s`, to-from, next))
}

// TestWholeLists checks which parameters the client sends for a list of an account, and that it returns all rows, or an error that
// names the setting that the venue contradicts. " | " separates the calls.
func TestWholeLists(t *testing.T) {
	for _, test := range []struct {
		name    string
		serve   func(w http.ResponseWriter, r *http.Request, rows int)
		paging  string
		options string
		rows    int
		// want contains the names of the parameters of each call. contradicts is the setting that the venue contradicts.
		want, contradicts string
	}{
		{"whole, refuses offsets", unpaged, "", "", 53, "-", ""},
		{"whole, refuses offsets, may be cut", unpaged, "", "", 200, "- | offset", ""},
		{"whole, ignores offsets, may be cut", ignoring, "", yes, 200, "- | offset", ""},
		{"whole, told", ignoring, none, "", 200, "-", ""},
		{"by offset, says nothing", byOffsets, "", "", 250, "- | offset | offset | offset", ""},
		{"by offset, says nothing, told", byOffsets, byOffset, yes, 250, "- | limit offset | limit offset", ""},
		{"by offset, ignores it, told", ignoring, byOffset, "", 5, "- | offset", "account-paging:offset"},
		{"by offset, sends the number of all rows", func(w http.ResponseWriter, r *http.Request, rows int) {
			servePage(w, r, rows, 100, fmt.Sprintf(`,"count":%d`, rows))
		}, "", yes, 250, "- | limit offset", ""},
		{"by offset, says whether there is more", func(w http.ResponseWriter, r *http.Request, rows int) {
			servePage(w, r, rows, 100, fmt.Sprintf(`,"hasMore":%v`, r.URL.Query().Get("offset") != "200"))
		}, "", "", 250, "- | offset | offset", ""},
		{"by offset, has a pagination", func(w http.ResponseWriter, r *http.Request, rows int) {
			servePage(w, r, rows, 100, fmt.Sprintf(`,"pagination":{"total":"%d"}`, rows))
		}, "", "", 250, "- | offset | offset", ""},
		{"by cursor", byCursors, "", "", 250, "- | cursor | cursor", ""},
		{"by cursor, with options", byCursors, byCursor, yes, 250, "- | cursor limit | cursor limit", ""},
		{"by cursor, told offset", byCursors, byOffset, "", 250, "-", "account-paging:offset"},
		{"by cursor, told none", byCursors, none, "", 250, "-", "account-paging:none"},
		{"more rows, told cursor", func(w http.ResponseWriter, r *http.Request, rows int) {
			servePage(w, r, rows, 100, fmt.Sprintf(`,"total":%d`, rows))
		}, byCursor, "", 250, "-", "account-paging:cursor"},
		{"refuses a page size", func(w http.ResponseWriter, r *http.Request, rows int) {
			if r.URL.Query().Has("limit") {
				badParameter(w, r)
				return
			}
			byCursors(w, r, rows)
		}, byCursor, yes, 250, "- | cursor limit", "account-options:yes"},
	} {
		for name, read := range wholeLists {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				v, o := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) { test.serve(w, r, test.rows) })), &recordingObserver{}
				c := v.client(t, func(cfg *Config) {
					cfg.Observer, cfg.Table = o, Table{settingAccountPaging: test.paging, settingAccountOptions: test.options}
				})
				got, err := read(t.Context(), asUser(t), c)
				if test.contradicts == "" && (err != nil || got != test.rows) {
					t.Errorf("got %d rows and the error %v, want %d rows", got, err, test.rows)
				}
				setting, _, _ := strings.Cut(test.contradicts, ":")
				if test.contradicts != "" && (err == nil || !strings.Contains(err.Error(), test.contradicts) || !strings.Contains(o.driftText(), ": contradicts "+setting)) {
					t.Errorf("got the error %v and the drift %q, want both to name %s", err, o.driftText(), test.contradicts)
				}
				assertEqual(t, sortedWords(v.parameters(0)), test.want)
			})
		}
	}
}

// TestEqualLotsAreNotCut checks that a full page of equal lots is an error if the venue may have ignored the offset of the next page,
// because nothing shows whether there are more lots.
func TestEqualLotsAreNotCut(t *testing.T) {
	v := newVenue(t, everywhere(answer(`{"positions":[`+strings.Repeat(`{"marketId":"M1","outcome":"YES","size":1},`, 9)+`{"marketId":"M1","outcome":"YES","size":1}]}`)))
	list, err := v.client(t).Positions(t.Context(), asUser(t), wallet)
	wantRefused("repeats its pages")(t, v, len(list), err)
}

// TestAccountPages checks which parameters the client sends for a page of trades, and whether the page has a next page. The venue has
// 30 trades on pages of 20.
func TestAccountPages(t *testing.T) {
	for _, test := range []struct {
		name            string
		paging, options string
		says            string // what the venue says about further pages: a cursor, the number of all trades, or nothing
		wantFirst       string
		// second contains the parameters of the call for the second page. It is empty if the first page must have no next page.
		second string
	}{
		{"documented, by cursor", "", "", byCursor, "-", "cursor"},
		{"with options, by cursor", "", yes, byCursor, "limit marketId", "cursor limit marketId"},
		{"documented, by offset", "", "", byOffset, "-", "offset"},
		{"nothing is said", "", yes, "", "limit marketId", "limit marketId offset"},
		{"nothing is said, told none", none, yes, "", "limit marketId", ""},
		{"nothing is said, told cursor", byCursor, yes, "", "limit marketId", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				from, _ := strconv.Atoi(q.Get("offset") + q.Get("cursor"))
				var rows []string
				for i := from; i < min(from+20, 30); i++ {
					rows = append(rows, fmt.Sprintf(`{"tradeId":"T%d","marketId":"M1","side":"BUY","price":0.5,"size":1,"timestamp":%d}`, i, 1_763_632_800-i))
				}
				says := map[string]string{byCursor: `,"nextCursor":null`, byOffset: `,"total":30`}[test.says]
				if test.says == byCursor && from == 0 {
					says = `,"nextCursor":"20"`
				}
				answer(`{"trades":[`+strings.Join(rows, ",")+`]`+says+`}`)(w, r)
			}))
			c := v.client(t, func(cfg *Config) {
				cfg.Table = Table{settingAccountPaging: test.paging, settingAccountOptions: test.options}
			})
			page, err := c.Trades(t.Context(), asUser(t), wallet, queries.Trades{MarketID: "M1", Limit: 20})
			must(t, err)
			if len(page.Trades) != 20 || (page.Next != "") != (test.second != "") {
				t.Fatalf("the first page has %d trades and the next page %q", len(page.Trades), page.Next)
			}
			assertEqual(t, sortedWords(v.parameters(0)), test.wantFirst)
			if test.second == "" {
				return
			}
			page, err = c.Trades(t.Context(), asUser(t), wallet, queries.Trades{MarketID: "M1", Limit: 20, Page: page.Next})
			must(t, err)
			if len(page.Trades) != 10 {
				t.Errorf("the second page has %d trades, want 10", len(page.Trades))
			}
			assertEqual(t, sortedWords(v.parameters(1)), test.second)
		})
	}
}

// TestIgnoredOffsets checks what the client makes of a venue that sends its first page for every offset. Until the paging is decided,
// the list ends. Afterwards the answer contradicts the setting.
func TestIgnoredOffsets(t *testing.T) {
	for paging, code := range map[string]market.Code{"": "", byOffset: market.CodeUpstreamBadResponse} {
		for total, decide := range map[string]setting{`"trades":[{"tradeId":"T1","marketId":"M1","side":"BUY","price":0.5,"size":1,"timestamp":1763632800}]`: settingAccountPaging, `"markets":[` + marketJSON("1") + `]`: settingSearchPaging} {
			c := newVenue(t, everywhere(answer(`{`+total+`,"total":3}`))).client(t, with(func(table *Table) { table[decide] = paging }))
			var err error
			if decide == settingAccountPaging {
				var page *queries.TradePage
				page, err = c.Trades(t.Context(), asUser(t), wallet, queries.Trades{})
				must(t, err)
				_, err = c.Trades(t.Context(), asUser(t), wallet, queries.Trades{Page: page.Next})
			} else {
				var page *queries.SearchPage
				page, err = c.Search(t.Context(), upstream.Call{}, queries.Search{})
				must(t, err)
				_, err = c.Search(t.Context(), upstream.Call{}, queries.Search{Page: page.Next})
			}
			if market.CodeOf(err) != code || code != "" && !strings.Contains(err.Error(), decide.String()) {
				t.Errorf("with %s:%s, the second page has the error %v, want the code %q", decide, paging, err, code)
			}
		}
	}
}

// TestSearchWithoutOptions checks that a search works if the venue accepts neither a sort nor a page size. A search must return an
// error if its rows have another order than requested, or if the venue refuses its filter.
func TestSearchWithoutOptions(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); len(q) != 1 || !q.Has("q") {
			badParameter(w, r)
			return
		}
		var rows []string
		for i := 1; i < 4; i++ {
			rows = append(rows, fmt.Sprintf(`{"marketId":"M%d","question":"?","volume":%d,"outcomes":[{"tokenId":"%d","outcome":"YES"}]}`, i, i, i))
		}
		answer("["+strings.Join(rows, ",")+"]")(w, r)
	}))
	c := v.client(t, with(func(table *Table) { table[settingSearchOptions] = no }))
	for i, read := range []struct {
		query queries.Search
		code  market.Code
		rows  int
		calls string
	}{
		{queries.Search{Text: "x", Sort: queries.SortRelevance, Direction: queries.Descending}, "", 3, "q"},
		{queries.Search{Text: "x", Sort: queries.SortVolume, Direction: queries.Ascending}, "", 3, "q"},
		{queries.Search{Text: "x", Sort: queries.SortVolume, Direction: queries.Descending}, market.CodeUnsupported, 0, "q"},
		{queries.Search{Text: "x", Category: "c"}, market.CodeUpstreamBadResponse, 0, "category q"},
	} {
		before := v.count()
		page, err := c.Search(t.Context(), upstream.Call{}, read.query)
		if market.CodeOf(err) != read.code || err == nil && len(page.Markets) != read.rows {
			t.Errorf("read %d returned the page %+v and the error %v, want %d markets and the code %q", i, page, err, read.rows, read.code)
		}
		assertEqual(t, sortedWords(v.parameters(before)), read.calls)
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

// parameters returns the parameter names in the query of each request, except the first n requests. The text of an empty query is
// "-".
func (v *fakeVenue) parameters(n int) (calls []string) {
	for _, query := range v.queries()[n:] {
		names := strings.Split(cmp.Or(query, "-"), "&")
		for i, parameter := range names {
			names[i], _, _ = strings.Cut(parameter, "=")
		}
		calls = append(calls, strings.Join(names, " "))
	}
	return calls
}

// TestListsThatMayBeCut reads a list of 50 rows whose response does not say whether more rows follow. If the call for further rows
// fails, the read must fail.
func TestListsThatMayBeCut(t *testing.T) {
	for name, furtherRows := range map[string]http.HandlerFunc{
		"the venue fails":       answerWith(http.StatusInternalServerError, "application/json", `{}`),
		"the venue is busy":     answerWith(http.StatusTooManyRequests, "application/json", `{}`),
		"the error has no code": answer(`{"success":false}`),
		"the form is unknown":   answer(`{"rows":"none"}`),
	} {
		t.Run(name, func(t *testing.T) {
			readBoth(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("offset") {
					furtherRows(w, r)
					return
				}
				listOfUser(w, r, rowsJSON(0, 50), "")
			}, func(t *testing.T, _ *fakeVenue, rows int, err error) {
				if err == nil || rows > 0 || market.CodeOf(err) == market.CodeInternal {
					t.Errorf("the read returned %d rows and the error %v, want no rows and an error of the venue", rows, err)
				}
			})
		})
	}
}
