package polymarket

import (
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// TestEveryFieldOfARecord reads a row of each list of the Data API with all members, each with a value of its own.
func TestEveryFieldOfARecord(t *testing.T) {
	row := `{
		"proxy_wallet":"0xabc","condition_id":"0xa1","token_id":"11","outcome":"Up","current_size":12.5,"total_size":99,"avg_price":0.25,"current_price":0.5,"unrealized_pnl":-3.125,
		"size":7.5,"price":0.75,"side":"sell","usdc_size":5.625,"timestamp":1900000014,"transaction_hash":"0xt1","type":"TRADE","outcome_index":1,"fee":0.125
	}`
	v, err := wire.Parse([]byte("[" + row + "]"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, showRows(v.Elements(), readPosition, func(p market.Position) string { return fmt.Sprintf("%+v", fieldsOf(p)) }),
		"market 0xa1 token 11 outcome Up size 12.5 avg 0.25 now 0.5 pnl -3.125")
	trade := func(x market.Trade) string {
		return fmt.Sprint(showTrade(x), " raw ", x.SideRaw, " id ", x.TradeID, " fee ", tool.Text(x.Fee))
	}
	equal(t, showRows(v.Elements(), readTrade, trade), `0xa1 11 SELL 0.75*7.5 "Up" at 2030-03-17T17:46:54Z in 0xt1 raw sell id  fee 0.125`)
	record := func(h market.HistoryRecord) string { return showRecord(h) + " in " + h.TransactionHash }
	equal(t, showRows(v.Elements(), readRecord, record), `TRADE/TRADE 2030-03-17T17:46:54Z amount 5.625 0xa1 11 "Up" SELL 0.75*7.5 in 0xt1`)

	v, _ = wire.Parse([]byte("[" + strings.Replace(row, `"TRADE"`, `"REDEEM"`, 1) + "]"))
	equal(t, showRows(v.Elements(), readRecord, record), `REDEEM/REDEEM 2030-03-17T17:46:54Z amount 5.625 0xa1 11 "Up"  -*7.5 in 0xt1`)
}

func fieldsOf(p market.Position) string {
	return fmt.Sprintf("market %s token %s outcome %s size %s avg %s now %s pnl %s", p.MarketID, p.TokenID, p.Outcome, p.Size, tool.Text(p.AvgPrice), tool.Text(p.CurrentPrice),
		tool.Text(p.UnrealizedPnl))
}

func TestBadRecords(t *testing.T) {
	for text, want := range map[string][3]string{
		`{}`: {"conditionId is missing", "price is missing", "type is missing"},
		`7`:  {"the element is not an object", "the element is not an object", "the element is not an object"},
		`{"condition_id":"0xa1","token_id":"1","current_size":1,"price":0.5,"size":1,"type":"SPLIT","timestamp":1900000000}`:                               {"ok", "ok", "ok"},
		`{"condition_id":"0xa1","token_id":"","current_size":1,"price":0.5,"size":1,"type":"SPLIT","timestamp":1900000000}`:                                {"tokenId is missing", "ok", "ok"},
		`{"condition_id":"","token_id":"","current_size":1,"price":0.5,"size":1,"type":"TIP","timestamp":1900000000}`:                                      {"conditionId is missing", "marketId is missing, like the token", "ok"},
		`{"condition_id":"0xa1","token_id":"1","current_size":-1,"price":0.5,"size":-1,"type":"SPLIT","timestamp":1900000000}`:                             {"currentSize is negative", "size is negative", "ok"},
		`{"condition_id":"0xa1","token_id":"1","current_size":1,"price":0.5,"size":1,"type":"SPLIT","timestamp":0}`:                                        {"ok", "timestamp is not a time", "timestamp is not a time"},
		`{"condition_id":"0xa1","token_id":"1","price":0.5,"type":"SPLIT","timestamp":1900000000}`:                                                         {"currentSize is missing", "size is missing", "ok"},
		`{"condition_id":"0xa1","token_id":"1","avg_price":"x","current_size":1,"size":"x","usdc_size":1,"price":1,"type":"SPLIT","timestamp":1900000000}`: {"avgPrice is not a number", "size is not a number", "size is not a number"},
		`{"condition_id":"0xa1","token_id":"1","current_size":1,"size":1,"usdc_size":"x","price":1,"type":"SPLIT","timestamp":1900000000}`:                 {"ok", "ok", "amount is not a number"},
	} {
		v, err := wire.Parse([]byte("[" + text + "]"))
		if err != nil {
			t.Fatal(err)
		}
		fine := func(string) string { return "ok" }
		got := [3]string{
			showRows(v.Elements(), func(r *wire.Row) string { readPosition(r); return "" }, fine)[0],
			showRows(v.Elements(), func(r *wire.Row) string { readTrade(r); return "" }, fine)[0],
			showRows(v.Elements(), func(r *wire.Row) string { readRecord(r); return "" }, fine)[0],
		}
		for i := range got {
			if got[i] = strings.TrimPrefix(got[i], "bad: "); got[i] != want[i] {
				t.Errorf("%s: reader %d says %q, want %q", text, i+1, got[i], want[i])
			}
		}
	}
}

func TestFormsOfPages(t *testing.T) {
	long := strings.Repeat("c", rest.MaxCursor)
	for text, want := range map[string]string{
		`{"data":null}`: "0 rows  false", `{"data":[7,8],"pagination":null}`: "2 rows  false", `{"data":[]}`: "0 rows  false",
		`{"data":[7],"pagination":{"has_more":true,"next_cursor":"C"}}`:            "1 rows C true",
		`{"data":[7],"pagination":{"hasMore":false,"nextCursor":"C"}}`:             "1 rows C false",
		`{"data":[7],"pagination":{"has_more":"true","next_cursor":""}}`:           "1 rows  false",
		`{"data":[],"pagination":{"has_more":true,"next_cursor":"` + long + `"}}`:  "0 rows " + long + " true",
		`{"data":[],"pagination":{"has_more":true,"next_cursor":"` + long + `c"}}`: errCursor.Error(),
		`{"data":[],"pagination":{"has_more":true}}`:                               errCursor.Error(),
		`{"data":[],"pagination":{"next_cursor":{}}}`:                              errCursor.Error(),
		`{"pagination":{}}`: errForm.Error(), `{"data":7}`: errForm.Error(), `null`: errForm.Error(), `[]`: errForm.Error(),
	} {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := readPage(v)
		got := fmt.Sprintf("%d rows %s %v", len(p.rows), p.next, p.more)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.80s: got %.80s, want %.80s", text, got, want)
		}
	}
}

func TestFormsOfTheValue(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "no balance", `{"proxy_wallet":"0xABC","value":12.5}`: "12.5", `{"value":"0"}`: "0", `{"proxy_wallet":"","value":-1}`: "-1", `{"proxyWallet":"0xabc","value":1}`: "1",
		`{"proxy_wallet":"0xabc"}`: "value is missing", `{"proxy_wallet":"0xabc","value":null}`: "value is missing", `{"proxy_wallet":"0xabd","value":1}`: "the value is of another account",
		`{"value":"x"}`: "value is not a number", `[]`: "the element is not an object", `{"proxy_wallet":{},"value":1}`: "proxyWallet is not an id",
	} {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b, err := readValue(v, "0xabc", ignore)
		got := "no balance"
		if b != nil {
			got = tool.Text(b.PositionsValue)
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: readValue gives %q, want %q", text, got, want)
		}
	}
}

// TestKindsOfActivity reads a row of each type of activity in Polymarket/ts-sdk (packages/bindings/src/data/common.ts).
func TestKindsOfActivity(t *testing.T) {
	for types, kind := range map[string]string{
		"TRADE": "TRADE", "SPLIT": "SPLIT", "MERGE": "MERGE", "REDEEM": "REDEEM", "CONVERSION,MIGRATION": "CONVERSION", "DEPOSIT": "DEPOSIT", "WITHDRAWAL": "WITHDRAWAL",
		"REWARD,YIELD,MAKER_REBATE,TAKER_REBATE,REFERRAL_REWARD": "REWARD", "TIP": "TRANSFER", "AIRDROP": "UNKNOWN",
	} {
		for raw := range strings.SplitSeq(types, ",") {
			for _, text := range []string{raw, strings.ToLower(raw)} {
				v, _ := wire.Parse([]byte(`[{"type":"` + text + `","timestamp":1900000000,"usdc_size":3,"size":4,"side":"IN","price":0.75}]`))
				tail := map[string]string{"TRADE": `amount 3   "" UNKNOWN 0.75*4`, "TRANSFER": `amount 4   ""  -*-`}[kind]
				if tail == "" {
					tail = `amount 3   ""  -*4`
				}
				equal(t, showRows(v.Elements(), readRecord, showRecord), kind+"/"+text+" 2030-03-17T17:46:40Z "+tail)
			}
		}
	}
}

// TestTips reads the amount and the direction of tips. Polymarket documents that the size is the amount and that the side is IN or OUT.
func TestTips(t *testing.T) {
	for fields, want := range map[string]string{
		`"size":25,"usdc_size":0,"side":"IN"`:    "25",
		`"size":25,"usdc_size":0,"side":"OUT"`:   "-25",
		`"size":25,"usdc_size":24,"side":"out"`:  "-25",
		`"size":0,"usdc_size":2.5,"side":"OUT"`:  "-2.5",
		`"usdc_size":"2.5","side":"in"`:          "2.5",
		`"size":-25,"side":"OUT"`:                "-25",
		`"size":25,"side":""`:                    "25 tip without a direction",
		`"size":25`:                              "25 tip without a direction",
		`"side":"OUT"`:                           "-",
		`"size":null,"usdc_size":"","side":"IN"`: "-",
	} {
		v, err := wire.Parse([]byte(`{"type":"TIP","timestamp":1900000000,` + fields + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		r := wire.NewRow(v, func(note string) { got += " " + note })
		h := readRecord(r)
		if got = tool.Text(h.Amount) + got; r.Err != nil || got != want || h.Size != nil || h.Side != "" || h.Price != nil {
			t.Errorf("%s gives %+v with the amount %s and the error %v, want only the amount %s", fields, h, got, r.Err, want)
		}
	}
}
