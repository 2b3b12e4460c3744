package polymarket

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// noted calls read with the value of a JSON text and with a function that collects the drift. It returns the drift.
func noted(t *testing.T, text string, read func(v wire.Value, note func(string))) (notes []string) {
	t.Helper()
	v, err := wire.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	read(v, func(note string) { notes = append(notes, note) })
	return notes
}

// errText returns the text of an error, or "ok".
func errText(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// TestFormsOfTokenLists checks which responses about tokens are refused, and what happens to the rows of the others.
func TestFormsOfTokenLists(t *testing.T) {
	for text, want := range map[string]string{
		`null`: errForm.Error() + " map[]", `{}`: errForm.Error() + " map[]", `"x"`: errForm.Error() + " map[]", `[]`: "ok map[]",
		`[{"token_id":"1","price":"0.1","side":"BUY"},{"token_id":"3"}]`:          "ok map[1:0.1 3:price is missing] bad element",
		`[{"asset_id":1,"price":"0.1","side":"BUY"}]`:                             "ok map[1:0.1]",
		`[{"token_id":"1","price":"0.1","side":""}]`:                              "ok map[1:none]",
		`[{"token_id":"1","price":"7","side":""}]`:                                "ok map[1:price is not from 0 to 1] bad element",
		`[{"token_id":"1","side":"SELL"}]`:                                        "ok map[1:price is missing] bad element",
		`[{"token_id":"","price":"0.1"},{"token_id":"2","price":1,"side":"BUY"}]`: "ok map[:none 2:1] element without a readable id",
		`[{"token_id":[]}]`: "ok map[:none] element without a readable id",
		`[7]`:               "ok map[:none] element without a readable id",
	} {
		got := ""
		notes := noted(t, text, func(v wire.Value, note func(string)) {
			values, err := readLastTrades(v, note)
			shown := map[string]string{}
			for id, r := range values {
				if shown[id] = errText(r.Err); r.Value != nil {
					shown[id] = r.Value.Price.String()
				} else if r.Err == nil {
					shown[id] = "none"
				}
			}
			got = fmt.Sprint(errText(err), " ", shown)
		})
		if got = strings.Join(append([]string{got}, notes...), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestFormsOfMidpoints(t *testing.T) {
	for text, want := range map[string]string{
		`null`: errForm.Error() + " map[]", `[]`: errForm.Error() + " map[]", `{}`: "ok map[]", `{"3":"0.1"}`: "ok map[3:3 0.1 MIDPOINT]",
		`{"1":"0.1","2":null}`: "ok map[1:1 0.1 MIDPOINT]", `{"1":0,"2":"1"}`: "ok map[1:1 0 MIDPOINT 2:2 1 MIDPOINT]", `{"1":"","2":"0.5"}`: "ok map[2:2 0.5 MIDPOINT]",
		`{"1":"-0.1","2":[]}`: "ok map[1:price is not from 0 to 1 2:price is not a number] bad element bad element", `{"1":null}`: "ok map[]",
	} {
		got := ""
		notes := noted(t, text, func(v wire.Value, note func(string)) {
			values, err := readMidpoints(v, note)
			shown := map[string]string{}
			for id, r := range values {
				if shown[id] = errText(r.Err); r.Err == nil {
					shown[id] = fmt.Sprint(r.Value.TokenID, " ", r.Value.Price, " ", r.Value.Basis)
				}
			}
			got = fmt.Sprint(errText(err), " ", shown)
		})
		if got = strings.Join(append([]string{got}, notes...), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestEveryFieldOfABook checks each field of a book, of its spread and of a last trade, which have values of their own.
func TestEveryFieldOfABook(t *testing.T) {
	text := `[{"market":"0xaa01","asset_id":"11","timestamp":"1900000000123","hash":"h","bids":[{"price":"0.25","size":"10"},{"price":"0.2","size":"3"}],"asks":[{"price":"0.75","size":"4"}],"version":"v2"}]`
	v, _ := wire.Parse([]byte(text))
	books, err := readBooks(v, ignore)
	if err != nil || books["11"].Err != nil {
		t.Fatal(err, books)
	}
	b := books["11"].Value
	equal(t, []string{showBook(b)}, "11 bids 0.25*10 0.2*3 asks 0.75*4 spread 0.5 top 0.25/0.75 at 2030-03-17T17:46:40.123Z hash h depth 200")
	for text, want := range map[string]string{
		`[{"asset_id":"11","bids":[],"asks":[]}]`:                                                                   "11 bids asks spread - top -/- at - hash  depth 200",
		`[{"asset_id":"11","timestamp":"soon","bids":[],"asks":null}]`:                                              "11 bids asks spread - top -/- at - hash  depth 200; timestamp unreadable",
		`[{"asset_id":"11","bids":[["0.5","1"]],"asks":[["0.5","2"]]}]`:                                             "11 bids 0.5*1 asks 0.5*2 spread 0 top 0.5/0.5 at - hash  depth 200",
		`[{"asset_id":"11","bids":[{"price":"0.51","size":"1"}],"asks":[["0.5","2"]]}]`:                             errCrossed.Error() + "; crossed book; bad element",
		`[{"asset_id":"11","bids":[["0.1","1000"],["0.305","20"],["0.2","0"]],"asks":[["0.99","5"],["0.31","7"]]}]`: "11 bids 0.305*20 0.1*1000 asks 0.31*7 0.99*5 spread 0.005 top 0.305/0.31 at - hash  depth 200",
		`[{"asset_id":"11","bids":[["0.6","-1"]],"asks":[]}]`:                                                       "bids has a bad level: size is negative; bad element",
		`[{"asset_id":"11","bids":[]}]`:                                                                             "asks is not a list; bad element",
	} {
		got := ""
		notes := noted(t, text, func(v wire.Value, note func(string)) {
			values, err := readBooks(v, note)
			if got = errText(values["11"].Err); err == nil && values["11"].Err == nil {
				got = showBook(values["11"].Value)
			}
		})
		if got = strings.Join(append([]string{got}, notes...), "; "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	deep := make([]string, 0, 250)
	for i := range 250 {
		deep = append(deep, fmt.Sprintf(`["0.%03d","1"]`, i+1))
	}
	v, _ = wire.Parse([]byte(`[{"asset_id":"11","bids":[` + strings.Join(deep, ",") + `],"asks":[]}]`))
	books, _ = readBooks(v, ignore)
	if b := books["11"].Value; b.Bids.Len() != 200 || b.BestBid().String() != "0.250" {
		t.Errorf("a book of 250 levels has %d bids and the best bid %s, want the best 200", b.Bids.Len(), b.BestBid())
	}
}

func TestFormsOfHistories(t *testing.T) {
	day, _ := market.ParseDate("2030-03-17")
	for text, want := range map[string]string{
		`{}`: errForm.Error(), `{"history":[]}`: errForm.Error(), `{"history":null}`: errForm.Error(), `{"history":{}}`: "ok",
		`{"history":{"1":null}}`: "ok",
		`{"history":{"1":[]}}`:   "ok 1: 0 points of 1, 0 left out",
		`{"history":{"1":[{"t":1900000000,"p":0.5},{"timestamp":"1900000300","price":"0.75"},{"t":1900000600,"p":7},{"p":1},7]}}`:   "ok 1: 2 points of 1, 3 left out; bad row; bad row; bad row",
		`{"history":{"1":7,"2":[{"t":1800000000,"p":0.5}]}}`:                                                                        "ok 1: the response does not have the expected form 2: 0 points of 2, 0 left out; bad element",
		`{"history":{"2":[{"t":1900000000,"p":7}]}}`:                                                                                "ok 2: UPSTREAM_BAD_RESPONSE; bad row",
		`{"history":{"2":"[{\"t\":1900000000,\"p\":0.5}]"}}`:                                                                        "ok 2: 1 points of 2, 0 left out",
		`{"history":{"1":[{"t":1900000000,"p":7},{"t":1800000000,"p":0.5}],"2":[{"t":1900000000,"p":0.5},{"t":1900000000,"p":1}]}}`: "ok 1: UPSTREAM_BAD_RESPONSE 2: 1 points of 2, 0 left out; bad row",
	} {
		got := ""
		notes := noted(t, text, func(v wire.Value, note func(string)) {
			values, err := readHistories(v, day, day, note)
			got = errText(err)
			for _, id := range []string{"1", "2"} {
				switch r, ok := values[id]; {
				case !ok:
				case r.Err == errForm:
					got += " " + id + ": " + r.Err.Error()
				case r.Err != nil:
					got += " " + id + ": " + string(market.CodeOf(r.Err))
				default:
					got += fmt.Sprintf(" %s: %d points of %s, %d left out", id, len(r.Value.Points), r.Value.TokenID, len(r.Value.LeftOut))
					if r.Value.From != day || r.Value.To != day {
						t.Errorf("%s: the history is from %v to %v, want %v", text, r.Value.From, r.Value.To, day)
					}
				}
			}
		})
		if got = strings.Join(append([]string{got}, notes...), "; "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestDaysOfPoints checks the bounds of a period: both of its days belong to it, and points are sorted by time.
func TestDaysOfPoints(t *testing.T) {
	day, _ := market.ParseDate("2030-03-17")
	var points []market.PricePoint
	for _, at := range []string{"2030-03-16T23:59:59Z", "2030-03-17T00:00:00Z", "2030-03-18T23:59:59Z", "2030-03-19T00:00:00Z"} {
		parsed, _ := time.Parse(time.RFC3339, at)
		points = append(points, market.PricePoint{Timestamp: parsed})
	}
	var got []string
	for _, point := range rest.PointsOfDays(points, day, day+1, ignore) {
		got = append(got, tool.Text(point.Timestamp))
	}
	equal(t, got, "2030-03-17T00:00:00Z", "2030-03-18T23:59:59Z")
	for days, want := range map[int]int{1: 5, 2: 5, 3: 15, 7: 15, 8: 60, 31: 60, 32: 1440, 90: 1440} {
		if got := fidelity(day, day+market.Date(days)-1); got != want {
			t.Errorf("the points of %d days are %d minutes apart, want %d", days, got, want)
		}
	}
}

func TestFormsOfClobResults(t *testing.T) {
	token := func(id string, winner any) string {
		return fmt.Sprintf(`{"token_id":%q,"outcome":"L%s","winner":%v}`, id, id, winner)
	}
	for text, want := range map[string]string{
		`{"condition_id":"0xa1","closed":true,"tokens":[` + token("1", false) + "," + token("2", true) + `]}`: "ok {winner:2 label:L2 equal:false}",
		`{"condition_id":"0xA1","closed":"true","tokens":[` + token("1", `"true"`) + `]}`:                     "ok {winner:1 label:L1 equal:false}",
		`{"condition_id":"0xa1","closed":false,"tokens":[` + token("1", true) + `]}`:                          "ok {winner: label: equal:false}",
		`{"condition_id":"0xa1","tokens":[` + token("1", true) + `]}`:                                         "ok {winner: label: equal:false}",
		`{"condition_id":"0xa1","closed":true,"is_50_50_outcome":true,"tokens":[` + token("1", false) + `]}`:  "ok {winner: label: equal:true}",
		`{"condition_id":"0xa1","closed":true,"is_50_50_outcome":true,"tokens":[` + token("1", true) + `]}`:   "ok {winner:1 label:L1 equal:false}",
		`{"condition_id":"0xa1","closed":true,"tokens":[` + token("1", true) + "," + token("2", true) + `]}`:  "the market has two winners {winner: label: equal:false}",
		`{"condition_id":"0xa1","closed":true,"tokens":[{"winner":true}]}`:                                    "tokenId is missing {winner: label: equal:false}",
		`{"condition_id":"0xa1","closed":true,"tokens":[7]}`:                                                  "the element is not an object {winner: label: equal:false}",
		`{"condition_id":"0xa1","closed":true}`:                                                               "tokens are missing {winner: label: equal:false}",
		`{"condition_id":"0xa2","closed":true,"tokens":[]}`:                                                   "the response is about another market {winner: label: equal:false}",
		`{"closed":true,"tokens":[]}`:                                                                         "the response is about another market {winner: label: equal:false}",
		`[]`:                                                                                                  "the element is not an object {winner: label: equal:false}",
		`{"condition_id":"0xa1","closed":true,"tokens":[]}`:                                                   "ok {winner: label: equal:false}",
	} {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readClobResult(v, "0xa1", ignore)
		if shown := fmt.Sprintf("%s %+v", errText(err), got); shown != want {
			t.Errorf("%s\n got %s\nwant %s", text, shown, want)
		}
	}
	m := &market.Market{Summary: true, Status: market.StatusClosed, Outcomes: []market.Outcome{{TokenID: "1", Label: "Yes"}, {TokenID: "2", Label: "No"}}}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	result{equal: true}.apply(m, &market.Resolution{ResolvedAt: at})
	if m.Status != market.StatusCancelled || m.Summary || *m.Resolution != (market.Resolution{ResolvedAt: at, Source: "CLOB"}) {
		t.Errorf("an equal result gives %+v with the resolution %+v, want a cancelled market with the time and the source", m, m.Resolution)
	}
	m.Status, m.Summary, m.Resolution = market.StatusClosed, true, nil
	result{}.apply(m, &market.Resolution{})
	if m.Status != market.StatusClosed || m.Summary || m.Resolution != nil || m.Outcomes[0].Winner != nil {
		t.Errorf("a missing result gives %+v, want the market as it was", m)
	}
}
