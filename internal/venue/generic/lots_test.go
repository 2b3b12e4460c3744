package generic

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

// TestWholeListsWhoseRowsMove checks that the client returns a row once, even if the row moves to a later page between two calls.
// The client recognizes an order by its id. A position has no id, so the client must read the whole list of positions again.
func TestWholeListsWhoseRowsMove(t *testing.T) {
	for _, name := range []string{"positions", "orders"} {
		t.Run(name, func(t *testing.T) {
			read := 0
			v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Query().Get("cursor") {
				case "":
					read++
					listOfUser(w, r, rowsJSON(0, 100), `,"nextCursor":"x"`)
				case "x":
					from := 100
					if read == 1 {
						from = 99
					}
					listOfUser(w, r, rowsJSON(from, 200), ``)
				}
			}))
			ids, calls := map[string]int{}, 4
			if name == "positions" {
				list, err := v.client(t).Positions(t.Context(), asUser(t), wallet)
				must(t, err)
				for _, p := range list {
					ids[p.MarketID]++
				}
			} else {
				calls = 2
				list, err := v.client(t).Orders(t.Context(), asUser(t), wallet)
				must(t, err)
				for _, o := range list {
					ids[o.OrderID]++
				}
			}
			if len(ids) != 200 || v.count() != calls {
				t.Errorf("got %d different rows in %d calls, want 200 rows in %d calls", len(ids), v.count(), calls)
			}
			for id, n := range ids {
				if n != 1 {
					t.Errorf("the client returned the row %s %d times, want once", id, n)
				}
			}
		})
	}
}

// TestPositionsThatKeepMoving checks that the client returns an error if the list of positions changes during every read.
func TestPositionsThatKeepMoving(t *testing.T) {
	read := 0
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			read++
			listOfUser(w, r, rowsJSON(0, 100), `,"nextCursor":"x"`)
			return
		}
		listOfUser(w, r, rowsJSON(100-read, 200), ``)
	}))
	list, err := v.client(t).Positions(t.Context(), asUser(t), wallet)
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

// TestPagesOfAlikeRows checks, for every page size, that all trades of one transaction have different keys. History records must
// have different keys too.
func TestPagesOfAlikeRows(t *testing.T) {
	const total = 4
	for name, price := range map[string]string{"fills of one transaction": `0.5%d`, "equal fills": `0.5`} {
		for limit := 1; limit <= total+1; limit++ {
			for _, count := range []string{`,"count":4`, ``} {
				t.Run(fmt.Sprint(name, limit, count), func(t *testing.T) {
					c := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
						from, _ := strconv.Atoi(r.URL.Query().Get("offset"))
						var rows []string
						for i := from; i < min(from+limit, total); i++ {
							p := price
							if strings.Contains(p, "%") {
								p = fmt.Sprintf(p, i)
							}
							rows = append(rows, `{"timestamp":1764000000,"marketId":"M1","tokenId":"T1","outcome":"YES","side":"BUY","price":`+p+`,"size":10,"transactionHash":"0xabc"}`)
						}
						answer(`{"trades":[`+strings.Join(rows, ",")+`]`+count+`}`)(w, r)
					})).client(t, with(func(table *Table) { table[settingAccountPaging] = byOffset }))
					trades, records := map[string]bool{}, map[string]bool{}
					readPages(t, c, limit, func(trade *market.Trade) { trades[trade.Key()] = true }, func(record *market.HistoryRecord) { records[record.Key()] = true })
					if len(trades) != total || len(records) != total {
						t.Errorf("got %d trades and %d records with different keys, want %d of each", len(trades), len(records), total)
					}
				})
			}
		}
	}
}
