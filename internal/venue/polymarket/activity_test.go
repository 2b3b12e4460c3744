package polymarket

import (
	"strings"
	"testing"

	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

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
