package polymarket

import (
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/venue/wire"
)

// The ids of a market of protocol V2, from adriancova/polymarket-bot-v2, docs/venue/verified-2026-10-05.md. Its condition id has 62
// digits in the Gamma API and 64 digits elsewhere. Its positions are the condition id and one byte for the outcome, as decimal
// numbers.
const (
	shortV2 = "0x017089ce3ba22aaa0a4cba8250b8c8e1eb0000000000000000000000000000"
	longV2  = shortV2 + "00"
	yesV2   = "651150819117105875331414918119047680898421632356043490229292782433651916800"
	noV2    = "651150819117105875331414918119047680898421632356043490229292782433651916801"
)

func TestIDsOfProtocolV2(t *testing.T) {
	v1 := "0x" + strings.Repeat("ab", 31) + "00"
	zero, digits := "0x"+strings.Repeat("0", 64), strings.Repeat("1", 64)
	for id, want := range map[string][]string{
		shortV2: {longV2, shortV2, longV2}, longV2: {longV2, shortV2, longV2}, longV2[:65] + "1": {longV2[:65] + "1", longV2[:65] + "1"}, v1: {v1, v1}, v1[:64]: {v1, v1[:64]},
		"0xa1": {"0xa1", "0xa1"}, zero: {zero, zero}, digits: {digits, digits}, "": {"", ""},
	} {
		if got := append([]string{conditionID(id)}, conditionForms(id)...); !slices.Equal(got, want) {
			t.Errorf("the forms of the id %q are %q, want %q", id, got, want)
		}
	}
	for token, want := range map[string]bool{
		"115339776388732929035197660848497720713218148788040405586178452820382218977280": true, // the module 255
		yesV2: true, noV2: true, "5": false, "": false, "-" + yesV2: false, shortV2: false, yesV2 + "0000": false,
		strings.Repeat("7", 77):          false, // a hash
		yesV2[:60] + "0" + yesV2[61:]:    false, // the bits that must be 0 are not 0
		"1" + strings.Repeat("0", 300):   false,
		"0" + yesV2:                      true,
		"452312848583266388373324160190": false,
	} {
		if got := isPosition(token); got != want {
			t.Errorf("isPosition(%q) returns %v, want %v", token, got, want)
		}
	}
}

// TestMarketsOfProtocolV2 checks that the version of a market decides which of its fields has the tokens, even if it has both. The
// forms are those of Polymarket/ts-sdk (packages/bindings/src/gamma/market.test.ts and packages/client/src/actions/markets.ts).
func TestMarketsOfProtocolV2(t *testing.T) {
	const clob, positions = `"clobTokenIds":"[\"111\",\"112\"]",`, `"positionIds":["` + yesV2 + `","` + noV2 + `"],`
	const v2Tokens, clobTokens, none = " Yes=" + yesV2 + "@-/- No=" + noV2 + "@-/-", " Yes=111@-/- No=112@-/-", " Yes=" + longV2 + ":0@-/- No=" + longV2 + ":1@-/-"
	for ids, want := range map[string]string{
		`"version":"v2","clobTokenIds":null,` + positions:                      v2Tokens,
		`"version":"v2","positionIds":"[\"` + yesV2 + `\",\"` + noV2 + `\"]",`: v2Tokens,
		`"version":"v2",` + clob + positions:                                   v2Tokens,
		`"version":"v1",` + clob + positions:                                   clobTokens,
		`"version":null,` + clob + positions:                                   clobTokens,
		clob + positions:                                                       clobTokens,
		`"version":"v2",` + clob:                                               none,
		`"version":"v2","positionIds":[],` + clob:                              none,
		`"version":"v1",` + positions:                                          none,
		`"version":"v3",` + clob + positions:                                   none + " drift: market of an unknown version",
		`"version":"v2","positionIds":{},`:                                     none + " drift: positionIds unreadable",
	} {
		head := longV2 + "  OPEN/"
		if notes, ok := strings.CutPrefix(want, none); ok {
			want = none + " summary" + notes
		} else {
			want += " summary"
		}
		got := readOne(t, `{"conditionId":"`+shortV2+`","question":"Q",`+ids+`"outcomes":"[\"Yes\",\"No\"]","active":true}`)
		if got != head+want {
			t.Errorf("%s\n got %s\nwant %s", ids, got, head+want)
		}
	}
	for ids, want := range map[string]string{
		`["1","1"]`: "bad: positionIds name a token twice", `["1",""]`: "bad: positionIds contain an unreadable or empty id",
		`["1"]`: "bad: outcomes are missing or do not match their tokens",
	} {
		got := readOne(t, `{"conditionId":"`+shortV2+`","question":"Q","version":"v2","positionIds":`+ids+`,"outcomes":"[\"Yes\",\"No\"]"}`)
		equal(t, []string{got}, want)
	}
}

// TestResolutionOfProtocolV2 checks that resolutionStatus counts in markets of V2, where it replaces umaResolutionStatus.
func TestResolutionOfProtocolV2(t *testing.T) {
	for fields, want := range map[string]string{
		`"version":"v2","resolutionStatus":"resolved"`:                                  "RESOLVED/resolved Yes=1@1/true No=2@0/false resolution=Yes,-,",
		`"version":"v2","resolutionStatus":"active"`:                                    "CLOSED/active Yes=1@1/- No=2@0/- summary",
		`"version":"v2","resolutionStatus":"active","umaResolutionStatus":"resolved"`:   "CLOSED/active Yes=1@1/- No=2@0/- summary",
		`"version":"v2","umaResolutionStatus":"resolved"`:                               "RESOLVED/resolved Yes=1@1/true No=2@0/false resolution=Yes,-,",
		`"version":"v1","umaResolutionStatus":"proposed","resolutionStatus":"resolved"`: "CLOSED/proposed Yes=1@1/- No=2@0/- summary",
		`"umaResolutionStatus":"resolved","resolutionStatus":"active"`:                  "RESOLVED/resolved Yes=1@1/true No=2@0/false resolution=Yes,-,",
	} {
		got := readOne(t, `{"conditionId":"0xa1","question":"Q","description":"D","clobTokenIds":["1","2"],"positionIds":["1","2"],"outcomes":["Yes","No"],"outcomePrices":["1","0"],"closed":true,`+fields+`}`)
		if want = "0xa1  " + want; got != want {
			t.Errorf("%s\n got %s\nwant %s", fields, got, want)
		}
	}
}

// TestRowsOfProtocolV2 checks that rows with a condition id of 62 digits belong to the market with 64 digits.
func TestRowsOfProtocolV2(t *testing.T) {
	v, err := wire.Parse([]byte(`[{"condition_id":"` + shortV2 + `","token_id":"` + yesV2 + `","current_size":1,"size":2,"price":0.5,"side":"BUY","timestamp":1900000000,"type":"TRADE"}]`))
	if err != nil {
		t.Fatal(err)
	}
	rows := v.Elements()
	equal(t, showRows(rows, readPosition, showPosition), longV2+" "+yesV2+` "" 1 avg - now - pnl -`)
	equal(t, showRows(rows, readTrade, showTrade), longV2+" "+yesV2+` BUY 0.5*2 "" at 2030-03-17T17:46:40Z in `)
	equal(t, showRows(rows, readRecord, showRecord), "TRADE/TRADE 2030-03-17T17:46:40Z amount - "+longV2+" "+yesV2+` "" BUY 0.5*2`)
	clob := `{"condition_id":"` + shortV2 + `","closed":true,"tokens":[{"token_id":"` + noV2 + `","outcome":"No","winner":true}]}`
	v, _ = wire.Parse([]byte(clob))
	if got, err := readClobResult(v, longV2, ignore); err != nil || got.winner != noV2 || got.label != "No" {
		t.Errorf("readClobResult returns %+v and the error %v, want the winner %s", got, err, noV2)
	}
}
