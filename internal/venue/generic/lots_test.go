package generic

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

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
