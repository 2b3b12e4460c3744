package polymarket_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// shape adds the JSON types of a value and of its members and elements, except null, to the map types. The keys of types are paths
// such as ".events[].id". path is the path of the value.
func shape(value any, path string, types map[string][]string) {
	add := func(kind string) {
		if !slices.Contains(types[path], kind) {
			types[path] = append(types[path], kind)
		}
	}
	switch v := value.(type) {
	case object:
		add("object")
		for name, member := range v {
			shape(member, path+"."+name, types)
		}
	case []any:
		add("list")
		for _, element := range v {
			shape(element, path+"[]", types)
		}
	case nil:
	default:
		add(fmt.Sprintf("%T", v))
	}
}

func shapeOf(values ...any) map[string][]string {
	types := map[string][]string{}
	for _, v := range values {
		shape(v, "", types)
	}
	return types
}

// TestFormsAreThoseOfRecordedAnswers checks that the members of the simulator's responses have the same names and types as in
// recorded responses. Each form lists its exceptions.
func TestFormsAreThoseOfRecordedAnswers(t *testing.T) {
	dir := tool.PolymarketSamples(t)
	r := newRig(t)
	ids := r.tokenIDs()[:120]
	s := r.dial()
	s.subscribe(ids...)
	frames := map[any][]any{}
	collect := func() {
		for _, m := range s.drain() {
			frames[m["event_type"]] = append(frames[m["event_type"]], m)
		}
	}
	collect()
	r.step(40)
	collect()
	var open, closed []any
	for _, m := range r.markets("limit=60") {
		open = append(open, m.object)
	}
	var conditions []any
	for _, m := range r.markets("limit=100&closed=true") {
		closed = append(closed, m.object)
		if m.object["version"] != nil {
			conditions = append(conditions, r.get("/markets/"+padded(m.object["conditionId"].(string))))
		}
	}
	m := r.markets("limit=1&clob_token_ids=" + ids[0])[0]
	if status, _ := r.call("/__control/market", object{"marketId": m.object["conditionId"], "tickSize": 0.001}); status != 200 {
		if status, answer := r.call("/__control/market", object{"marketId": m.object["conditionId"], "tickSize": 0.01}); status != 200 {
			t.Fatal(answer)
		}
	}
	if status, answer := r.call("/__control/market", object{"marketId": m.object["conditionId"], "winningTokenId": m.tokens[0]}); status != 200 {
		t.Fatal(answer)
	}
	for _, upcoming := range r.Engine().Markets() {
		if upcoming.Status == "UPCOMING" {
			if err := r.Engine().SetStatus(upcoming.MarketID, "OPEN"); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	collect()
	_, books := r.call("/books", tokens(ids[2:]...))
	events := rowsOf(r.get("/events/keyset?limit=100"), "events")
	exclusive := []any{}
	for _, e := range events {
		if e["negRisk"] == true {
			exclusive = append(exclusive, e)
		}
	}
	data := func(path string) []any { return r.get(path + "?limit=100&user=" + address)["data"].([]any) }

	series := []string{".events[].series", ".events[].startTime", ".events[].seriesSlug"}
	// The recorded responses are older than protocol V2, whose documentation adds these members.
	v2 := []string{".version", ".positionIds", ".resolutionStatus"}
	for _, test := range []form{
		{"clob/book.json", books.([]any), nil, []string{".tick_size", ".min_order_size", ".neg_risk", ".last_trade_price", ".version"}},
		{"clob/book_empty_ask.json", books.([]any), nil, []string{".asks[]", ".version"}},
		{"clob/market_resolved.json", conditions, []string{".rewards.rates", ".game_start_time"}, nil},
		{"gamma/gamma_market.json", open, append(series, ".makerBaseFee", ".takerBaseFee", ".makerRebatesFeeShareBps", ".eventStartTime",
			".showGmpSeries", ".showGmpOutcome", ".feeType"), append(v2, ".groupItemTitle", ".negRiskMarketID", ".negRiskRequestID", ".umaResolutionStatus")},
		{"gamma/gamma_market_closed_binary_accepting_true.json", closed, []string{".submitted_by", ".gameStartTime", ".umaBond",
			".umaReward", ".customLiveness", ".clobRewards", ".oneDayPriceChange", ".oneHourPriceChange", ".oneWeekPriceChange",
			".oneMonthPriceChange", ".seriesColor", ".showGmpSeries", ".showGmpOutcome", ".deployingTimestamp"},
			append(v2, ".events", ".liquidity", ".liquidityNum", ".volume24hr", ".volume1wk", ".volume1mo", ".volume1yr", ".volume24hrClob",
				".volume1wkClob", ".volume1moClob", ".volume1yrClob", ".liquidityClob", ".competitive", ".negRiskMarketID", ".umaResolutionStatus")},
		{"gamma/gamma_event.json", []any{exclusive}, []string{"[].sortBy", "[].startTime", "[].gmpChartMode", "[].countryName", "[].electionType",
			"[].estimateValue", "[].cumulativeMarkets", "[].deployingTimestamp", "[].markets[].submitted_by", "[].markets[].resolvedBy",
			"[].markets[].clobRewards", "[].markets[].umaBond", "[].markets[].umaReward", "[].markets[].customLiveness", "[].markets[].oneDayPriceChange",
			"[].markets[].oneHourPriceChange", "[].markets[].oneWeekPriceChange", "[].markets[].oneMonthPriceChange", "[].markets[].seriesColor",
			"[].markets[].showGmpSeries", "[].markets[].showGmpOutcome", "[].markets[].deployingTimestamp", "[].tags[].createdAt",
			"[].tags[].updatedAt", "[].tags[].publishedAt", "[].tags[].isCarousel", "[].tags[].forceHide", "[].tags[].createdBy", "[].tags[].updatedBy"},
			[]string{"[].markets[].closedTime", "[].markets[].umaResolutionStatus", "[].markets[].version"}},
		{"gamma/public_search.json", []any{r.get("/public-search?q=bitcoin")}, nil, nil},
		{"data_v2/positions_rows.json", []any{data("/v2/positions")}, nil, nil},
		{"data_v2/trades_rows.json", []any{data("/v2/trades")}, nil, nil},
		{"data_v2/activity_rows.json", []any{data("/v2/activity")}, nil, nil},
		{"data_v2/value.json", []any{r.get("/v2/value?user=" + address)["data"]}, nil, nil},
		{"ws/book_snapshot_captured.json", frames["book"], nil, []string{".version"}},
		{"ws/market_book_then_price_changes.json", []any{append(slices.Clone(frames["book"]), frames["price_change"]...)}, nil, []string{"[].version"}},
		{"ws/ws_last_trade_price.json", frames["last_trade_price"], nil, []string{".transaction_hash"}},
		{"ws/ws_tick_size_change.json", frames["tick_size_change"], nil, nil},
		{"ws/ws_market_best_bid_ask_msg.json", frames["best_bid_ask"], nil, nil},
		{"ws/ws_market_new_market_msg.json", frames["new_market"], nil, nil},
		{"ws/ws_market_resolved_msg.json", frames["market_resolved"], nil, nil},
	} {
		if len(test.ours) == 0 {
			t.Errorf("%s: the simulator sent no response to compare", test.file)
			continue
		}
		file, err := os.ReadFile(filepath.Join(dir, test.file))
		if err != nil {
			t.Fatal(err)
		}
		var sample any
		if err := json.Unmarshal(file, &sample); err != nil {
			t.Fatal(err)
		}
		test.compare(t, shapeOf(sample), shapeOf(test.ours...))
	}
}

// form is a recorded response and the corresponding responses of the simulator.
type form struct {
	file    string
	ours    []any
	missing []string // members of the recorded response that the simulator does not send
	extra   []string // members that the simulator sends and the recorded response lacks
}

// containsPath reports whether a list contains the path of a member, or the path of an enclosing member.
func containsPath(list []string, path string) bool {
	return slices.ContainsFunc(list, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+".") || strings.HasPrefix(path, prefix+"[]")
	})
}

// compare fails the test if got and want have different members or different types. It accepts the members that missing and extra
// list.
func (f *form) compare(t *testing.T, want, got map[string][]string) {
	if f.file == "gamma/public_search.json" { // the forms of other files check the members of events and markets
		want = map[string][]string{".events": want[".events"], ".pagination.hasMore": want[".pagination.hasMore"], ".pagination.totalResults": want[".pagination.totalResults"]}
		for at := range got {
			if strings.HasPrefix(at, ".events[]") || at == "" || at == ".pagination" {
				delete(got, at)
			}
		}
	}
	for at, kinds := range want {
		if len(got[at]) == 0 && !containsPath(f.missing, at) {
			t.Errorf("%s: the simulator does not send the member %s of the types %v", f.file, at, kinds)
		}
	}
	for at, kinds := range got {
		if len(want[at]) == 0 && !containsPath(f.extra, at) {
			t.Errorf("%s: the simulator sends the member %s of the types %v, which the recorded response lacks", f.file, at, kinds)
		} else if len(want[at]) > 0 && !slices.Equal(slices.Sorted(slices.Values(kinds)), slices.Sorted(slices.Values(want[at]))) {
			t.Errorf("%s: the member %s has the types %v, want %v as recorded", f.file, at, kinds, want[at])
		}
	}
}
