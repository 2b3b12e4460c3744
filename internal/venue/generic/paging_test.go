package generic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// rowsJSON returns a list of the rows with the numbers in [from,to). Each row is valid both as a position and as an order.
func rowsJSON(from, to int) string {
	var rows []string
	for i := from; i < to; i++ {
		rows = append(rows, fmt.Sprintf(`{"orderId":"O%d","marketId":"M%d","outcome":"YES","side":"BUY","status":"OPEN","price":0.5,"size":1,"filledSize":0}`, i, i))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// wholeLists contains the reads of lists without pages. Each read returns the number of rows.
var wholeLists = map[string]func(ctx context.Context, call upstream.Call, c *Client) (int, error){
	"positions": func(ctx context.Context, call upstream.Call, c *Client) (int, error) {
		list, err := c.Positions(ctx, call, wallet)
		return len(list), err
	},
	"orders": func(ctx context.Context, call upstream.Call, c *Client) (int, error) {
		list, err := c.Orders(ctx, call, wallet)
		return len(list), err
	},
}

// readBoth reads the positions and the orders of an account from a venue with the handler h. After each read, it calls check
// with the number of rows and the error.
func readBoth(t *testing.T, h http.HandlerFunc, check func(t *testing.T, v *fakeVenue, rows int, err error)) {
	for name, read := range wholeLists {
		t.Run(name, func(t *testing.T) {
			v := newVenue(t, everywhere(h))
			rows, err := read(t.Context(), asUser(t), v.client(t))
			check(t, v, rows, err)
		})
	}
}

// listOfUser sends a JSON object with the rows in a member that has the name of the endpoint. The text in rest follows this member.
func listOfUser(w http.ResponseWriter, r *http.Request, rows, rest string) {
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	answer(fmt.Sprintf(`{%q:%s%s}`, name, rows, rest))(w, r)
}

// wantComplete returns a check that a read returned the given number of rows in the given number of calls.
func wantComplete(rows, calls int) func(*testing.T, *fakeVenue, int, error) {
	return func(t *testing.T, v *fakeVenue, got int, err error) {
		t.Helper()
		if err != nil || got != rows || v.count() != calls {
			t.Errorf("got %d rows, error %v, %d calls; want %d rows in %d calls: %v", got, err, v.count(), rows, calls, v.queries())
		}
	}
}

// wantRefused returns a check that a read returned no rows and an UPSTREAM_BAD_RESPONSE error. The error must contain the text why.
func wantRefused(why string) func(*testing.T, *fakeVenue, int, error) {
	return func(t *testing.T, _ *fakeVenue, got int, err error) {
		t.Helper()
		if market.CodeOf(err) != market.CodeUpstreamBadResponse || !strings.Contains(err.Error(), why) || got != 0 {
			t.Errorf("got %d rows and the error %v, want no rows and an error with the text %q", got, err, why)
		}
	}
}

func TestWholeListsRefuseRepetition(t *testing.T) {
	t.Run("the same cursor", func(t *testing.T) {
		readBoth(t, func(w http.ResponseWriter, r *http.Request) {
			from := 0
			if r.URL.Query().Has("cursor") {
				from = 3
			}
			listOfUser(w, r, rowsJSON(from, from+3), `,"nextCursor":"x"`)
		}, wantRefused("repeats its cursor"))
	})
	t.Run("new cursors, old rows", func(t *testing.T) {
		readBoth(t, func(w http.ResponseWriter, r *http.Request) {
			listOfUser(w, r, rowsJSON(0, 3), `,"nextCursor":"x`+r.URL.Query().Get("cursor")+`"`)
		}, wantRefused("repeats its pages"))
	})
	t.Run("announced offsets are ignored", func(t *testing.T) {
		readBoth(t, func(w http.ResponseWriter, r *http.Request) { listOfUser(w, r, rowsJSON(0, 3), `,"total":6`) }, wantRefused("repeats its pages"))
	})
	t.Run("empty pages", func(t *testing.T) {
		readBoth(t, func(w http.ResponseWriter, r *http.Request) {
			listOfUser(w, r, "[]", `,"nextCursor":"x`+r.URL.Query().Get("cursor")+`"`)
		}, wantRefused("repeats its pages"))
	})
}

func TestWholeListsAreBounded(t *testing.T) {
	page := func(size int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			listOfUser(w, r, rowsJSON(n*size, (n+1)*size), fmt.Sprintf(`,"nextCursor":"%d"`, n+1))
		}
	}
	readBoth(t, page(2500), func(t *testing.T, v *fakeVenue, rows int, err error) {
		wantRefused("more than 10000 rows")(t, v, rows, err)
		if v.count() != 5 {
			t.Errorf("the read made %d calls, want 5", v.count())
		}
	})
	readBoth(t, page(1), wantRefused("too many pages"))
	readBoth(t, func(w http.ResponseWriter, r *http.Request) {
		listOfUser(w, r, rowsJSON(0, 10_000), `,"nextCursor":null`)
	}, wantComplete(10_000, 1))
	readBoth(t, func(w http.ResponseWriter, r *http.Request) {
		listOfUser(w, r, rowsJSON(0, 10_001), `,"nextCursor":null`)
	},
		wantRefused("more than 10000 rows"))
}

func TestWholeListsReportTheBadRow(t *testing.T) {
	readBoth(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("offset") == "" {
			listOfUser(w, r, rowsJSON(0, 3), `,"total":5`)
			return
		}
		listOfUser(w, r, strings.Replace(rowsJSON(3, 5), `"size":1`, `"size":"1,5"`, 1), `,"total":5`)
	}, func(t *testing.T, v *fakeVenue, rows int, err error) {
		wantRefused("row 4 of the venue's answer could not be read (")(t, v, rows, err)
	})
}

// TestTradesAndHistoryAreFiltered checks that the client drops rows that do not match the filter.
func TestTradesAndHistoryAreFiltered(t *testing.T) {
	c := newVenue(t, everywhere(answer(`{"history":[],"trades":[
		{"tradeId":"T1","marketId":"M1","type":"FEE","price":0.5,"size":1,"side":"BUY","timestamp":"2026-11-20T10:00:00Z"},
		{"tradeId":"T2","marketId":"M2","type":"TRADE","price":0.5,"size":1,"side":"BUY","timestamp":"2026-11-20T11:00:00Z"},
		{"tradeId":"T3","marketId":"M1","type":"TRADE","price":0.5,"size":1,"side":"BUY","timestamp":"2026-11-20T12:00:00Z"}],"nextCursor":null}`))).client(t)
	atHour := func(hour int) queries.Bound { return queries.At(time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC)) }
	first := queries.At(time.Time{}) // 0001-01-01, a bound like any other
	for _, tt := range []struct {
		q    queries.Trades
		want string
	}{
		{queries.Trades{}, "T3 T2 T1"},
		{queries.Trades{MarketID: "M1"}, "T3 T1"},
		{queries.Trades{From: atHour(11)}, "T3 T2"},
		{queries.Trades{To: atHour(11)}, "T2 T1"},
		{queries.Trades{From: atHour(11), To: atHour(11)}, "T2"},
		{queries.Trades{To: first}, ""},
		{queries.Trades{From: first}, "T3 T2 T1"},
	} {
		page, err := c.Trades(t.Context(), asUser(t), wallet, tt.q)
		must(t, err)
		var got []string
		for _, trade := range page.Trades {
			got = append(got, trade.TradeID)
		}
		assertEqual(t, strings.Join(got, " "), tt.want)
	}
	page, err := c.History(t.Context(), asUser(t), wallet, queries.History{Kinds: []market.HistoryKind{market.HistoryFee}, From: atHour(9)})
	if err != nil || len(page.Records) != 1 || page.Records[0].ID != "T1" {
		t.Errorf("History returned %+v and the error %v, want only the record T1", page, err)
	}
	if page, err = c.History(t.Context(), asUser(t), wallet, queries.History{To: first}); err != nil || len(page.Records) != 0 {
		t.Errorf("History up to 0001-01-01 returned %+v and the error %v, want no records", page, err)
	}
}

func TestPageTokens(t *testing.T) {
	var numbering market.Numbering
	if err := numbering.UnmarshalText([]byte("AgAAAAEB")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []pageStart{
		{}, {Cursor: "abc"}, {Cursor: "a/b,c"}, {Cursor: strings.Repeat("x", rest.MaxCursor)}, {Cursor: "c:"}, {Cursor: "é\x00"},
		{Offset: 20}, {Offset: 20, Previous: "0123456789abcdef"}, {Offset: 20, Numbering: numbering}, {Cursor: "a/b", Numbering: numbering}, {Cursor: "x", Numbering: numbering},
	} {
		got, err := parsePageToken(upstream.EndpointTrades, p.token())
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("the token of %+v is %q, which parsePageToken reads as %+v with the error %v", p, p.token(), got, err)
		}
	}
}

func TestCursorsAreBounded(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("x", rest.MaxCursor+1))
	for _, cursor := range []string{string(long), "{}", "[1]", "true"} {
		c := newVenue(t, everywhere(answer(`{"trades":[],"markets":[],"nextCursor":`+cursor+`}`))).client(t)
		if _, err := c.Trades(t.Context(), asUser(t), wallet, queries.Trades{}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
			t.Errorf("Trades with the next cursor %.10s returned %v, want %s", cursor, err, market.CodeUpstreamBadResponse)
		}
		if _, err := c.Search(t.Context(), upstream.Call{}, queries.Search{}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
			t.Errorf("Search with the next cursor %.10s returned %v, want %s", cursor, err, market.CodeUpstreamBadResponse)
		}
	}
}

// TestPositionsThatMove checks a list whose rows move to a later page between two calls. A position has no id, so the client reads the
// whole list again. If the list changes during every read, the client returns an error.
func TestPositionsThatMove(t *testing.T) {
	read := 0
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			read++
			listOfUser(w, r, rowsJSON(0, 100), `,"nextCursor":"x"`)
			return
		}
		listOfUser(w, r, rowsJSON(98+min(read, 2), 200), ``)
	}))
	list, err := v.client(t).Positions(t.Context(), asUser(t), wallet)
	wantComplete(200, 4)(t, v, len(list), err)

	read = 0
	v = newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			read++
			listOfUser(w, r, rowsJSON(0, 100), `,"nextCursor":"x"`)
			return
		}
		listOfUser(w, r, rowsJSON(100-read, 200), ``)
	}))
	list, err = v.client(t).Positions(t.Context(), asUser(t), wallet)
	wantRefused("changes while it is read")(t, v, len(list), err)
}

// TestLotsOnEveryPageSize checks, for every page size, that the client returns all lots of a position. A lot is one of several rows
// for the same outcome.
func TestLotsOnEveryPageSize(t *testing.T) {
	const total = 7
	lots := map[string]func(i int) string{
		"different": func(i int) string {
			return fmt.Sprintf(`{"marketId":"M1","tokenId":"T1","outcome":"YES","size":%d,"avgPrice":0.4}`, i+1)
		},
		"equal": func(int) string { return `{"marketId":"M1","tokenId":"T1","outcome":"YES","size":4,"avgPrice":0.4}` },
		"alternating": func(i int) string {
			return fmt.Sprintf(`{"marketId":"M%d","outcome":"YES","size":4,"avgPrice":0.4}`, i%2)
		},
	}
	for name, lot := range lots {
		for size := 1; size <= total+1; size++ {
			for _, by := range []string{"offset", "cursor"} {
				t.Run(fmt.Sprint(name, " lots, pages of ", size, " by ", by), func(t *testing.T) {
					v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
						from, _ := strconv.Atoi(r.URL.Query().Get(by))
						var rows []string
						for i := from; i < min(from+size, total); i++ {
							rows = append(rows, lot(i))
						}
						more := fmt.Sprintf(`,"total":%d`, total)
						if by == "cursor" {
							if more = ""; from+size < total {
								more = fmt.Sprintf(`,"nextCursor":"%d"`, from+size)
							}
						}
						listOfUser(w, r, "["+strings.Join(rows, ",")+"]", more)
					}))
					list, err := v.client(t, with(func(table *Table) { table[settingAccountPaging] = by })).Positions(t.Context(), asUser(t), wallet)
					if name == "alternating" && size == 2 {
						wantRefused("repeats its pages")(t, v, len(list), err) // every page of two rows equals the previous page
						return
					}
					must(t, err)
					sum, keys := market.NewDecimal(0, 0), map[market.PositionKey]bool{}
					for _, p := range list {
						sum, keys[p.Key()] = sum.Add(p.Size), true
					}
					if len(list) != total || len(keys) != total || sum.String() != "28" {
						t.Errorf("got %d lots with %d keys and %s shares, want %d lots with different keys and 28 shares", len(list), len(keys), sum, total)
					}
				})
			}
		}
	}
}
