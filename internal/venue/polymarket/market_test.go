package polymarket

import (
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

// readOne reads a Gamma market. The result is the market as text, or the reason why the row is bad, and the drift.
func readOne(t *testing.T, row string) string {
	t.Helper()
	v, err := wire.Parse([]byte(row))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	r := wire.NewRow(v, func(note string) { notes = append(notes, note) })
	m, _ := readMarket(r, nil)
	drift := ""
	if len(notes) > 0 {
		drift = " drift: " + strings.Join(notes, ", ")
	}
	if r.Err != nil {
		return "bad: " + r.Err.Error() + drift
	}
	return showMarket(m) + drift
}

// TestMarketsWithoutAnOrderBook reads the forms in which Gamma says that a market has no tokens. Polymarket/ts-sdk reads null, "" and
// "[]" as null (packages/bindings/src/gamma/market.ts). Each outcome must have an id of its own, which no other market has.
func TestMarketsWithoutAnOrderBook(t *testing.T) {
	const want = "0xa1  OPEN/ Yes=0xa1:0@0.6/- No=0xa1:1@0.4/- summary"
	for ids, drift := range map[string]string{
		``: "", `"clobTokenIds":null,`: "", `"clobTokenIds":"",`: "", `"clobTokenIds":"[]",`: "", `"clobTokenIds":[],`: "",
		`"clobTokenIds":"[\"1\",",`: " drift: clobTokenIds unreadable", `"clobTokenIds":7,`: " drift: clobTokenIds unreadable",
	} {
		row := `{"conditionId":"0xa1","question":"Q",` + ids + `"outcomes":"[\"Yes\",\"No\"]","outcomePrices":"[\"0.6\",\"0.4\"]","active":true}`
		if got := readOne(t, row); got != want+drift {
			t.Errorf("%q\n got %s\nwant %s", ids, got, want+drift)
		}
	}
	equal(t, []string{
		readOne(t, `{"conditionId":"0xa1","question":"Q","outcomes":[]}`), readOne(t, `{"conditionId":"0xa1","question":"Q","outcomes":["Only"]}`),
	}, "bad: outcomes are missing or do not match their tokens", "0xa1  UNKNOWN/ Only=0xa1:0@-/- summary")
	resolved := `{"conditionId":"0xa2","question":"Q","description":"D","outcomes":["Yes","No"],"outcomePrices":["0","1"],"closed":true,"umaResolutionStatus":"resolved"}`
	equal(t, []string{readOne(t, resolved)}, "0xa2  RESOLVED/resolved Yes=0xa2:0@0/false No=0xa2:1@1/true resolution=No,-,")
}

// TestMarketsWithBadTokens checks that a row is bad if its tokens are not clear. The same token twice is a contradiction: the prices
// and the books of both outcomes would be equal.
func TestMarketsWithBadTokens(t *testing.T) {
	for ids, want := range map[string]string{
		`["1","1"]`: "bad: clobTokenIds name a token twice", `["1",""]`: "bad: clobTokenIds contain an unreadable or empty id",
		`["1",null]`: "bad: clobTokenIds contain an unreadable or empty id", `["1"]`: "bad: outcomes are missing or do not match their tokens",
		`["1","2","3"]`: "bad: outcomes are missing or do not match their tokens", `["1","2"]`: "0xa1  UNKNOWN/ Yes=1@-/- No=2@-/- summary",
	} {
		got := readOne(t, `{"conditionId":"0xa1","question":"Q","clobTokenIds":`+ids+`,"outcomes":"[\"Yes\",\"No\"]"}`)
		if got != want {
			t.Errorf("tokens %s\n got %s\nwant %s", ids, got, want)
		}
	}
}

// TestMarketsWithoutACondition reads markets whose condition id is "", as in the tests of Polymarket/ts-sdk, null or missing. The id
// of such a market is its id in the Gamma API.
func TestMarketsWithoutACondition(t *testing.T) {
	for _, condition := range []string{`"conditionId":"",`, `"conditionId":null,`, ``} {
		rest := `"question":"Q","outcomes":"[\"Yes\",\"No\"]"}`
		equal(t, []string{
			readOne(t, `{"id":"510",`+condition+rest), readOne(t, `{"id":511,`+condition+`"clobTokenIds":"[\"1\",\"2\"]",`+rest), readOne(t, `{`+condition+rest),
		},
			"510  UNKNOWN/ Yes=510:0@-/- No=510:1@-/- summary", "511  UNKNOWN/ Yes=1@-/- No=2@-/- summary", "bad: id is missing")
	}
	equal(t, []string{readOne(t, `{"id":"510","conditionId":{},"question":"Q","outcomes":"[\"Yes\",\"No\"]"}`)}, "bad: conditionId is not an id")
}

func TestOutcomeIDs(t *testing.T) {
	for id, want := range map[string]string{
		outcomeID("0xa1", 0): "0xa1", outcomeID("510", 12): "510", "0xa1": "", "0xa1:": "", "0xa1:01": "", "0xa1:-1": "", "0xa1:+1": "", "0xa1:x": "", "1:2:3": "",
	} {
		if got := marketOf(id); got != want {
			t.Errorf("marketOf(%q) returns %q, want %q", id, got, want)
		}
	}
	if isToken(outcomeID("510", 0)) || isCondition(outcomeID("0xa1", 0)) {
		t.Error("an id from outcomeID has the form of an id of Polymarket")
	}
}

// TestWinnerOfAMarketWithoutTokens checks that the label identifies the winner if only the CLOB API states the tokens.
func TestWinnerOfAMarketWithoutTokens(t *testing.T) {
	for _, test := range []struct{ ids, want string }{
		{``, "0xaa03  RESOLVED/ Up=0xaa03:0@-/false Down=0xaa03:1@-/true resolution=Down,-,CLOB"},
		{`"clobTokenIds":["1005","1006"],`, "0xaa03  RESOLVED/ Up=1005@-/false Down=1006@-/true resolution=Down,-,CLOB"},
		{`"clobTokenIds":["1","2"],`, "0xaa03  CLOSED/ Up=1@-/- Down=2@-/-"},
	} {
		v, _ := wire.Parse([]byte(`{"conditionId":"0xaa03","question":"Q",` + test.ids + `"outcomes":["Up","Down"],"closed":true}`))
		m, undecided := readMarket(wire.NewRow(v, ignore), nil)
		got, err := readClobResult(parse(t, "testdata", "clob_market.json"), "0xaa03", ignore)
		if err != nil || undecided == nil {
			t.Fatal(undecided, err)
		}
		got.apply(m, undecided)
		equal(t, []string{showMarket(m)}, test.want)
	}
}

// TestPartsOfAResult checks that a result has the time and the source that Gamma states, even if only the CLOB API states the winner.
// A row of a recorded market has the fields closedTime and resolvedBy without umaResolutionStatus. Polymarket/ts-sdk lists the values
// of umaResolutionStatus: disputed, proposed, requested, resolved and settled.
func TestPartsOfAResult(t *testing.T) {
	for fields, want := range map[string]string{
		``:                       "Down,-,CLOB",
		`"closedTime":"",`:       "Down,-,CLOB",
		`"resolvedBy":"0xfeed",`: "Down,-,0xfeed",
		`"resolutionSource":"https://a.invalid","resolvedBy":"0xfeed","closedTime":"2030-04-20 02:07:01+00",`: "Down,2030-04-20T02:07:01Z,https://a.invalid",
		`"closedTime":"2030-04-20T02:07:01.5Z","umaResolutionStatus":"proposed",`:                             "Down,2030-04-20T02:07:01.5Z,CLOB",
		`"closedTime":"2030-04-20 02:07:01+00","resolvedBy":"0xfeed","umaResolutionStatus":"disputed",`:       "Down,2030-04-20T02:07:01Z,0xfeed",
	} {
		v, err := wire.Parse([]byte(`{"conditionId":"0xaa03","question":"Q",` + fields + `"clobTokenIds":["1005","1006"],"outcomes":["Up","Down"],"outcomePrices":["0","1"],"closed":true}`))
		if err != nil {
			t.Fatal(err)
		}
		m, undecided := readMarket(wire.NewRow(v, ignore), nil)
		end, err := readClobResult(parse(t, "testdata", "clob_market.json"), "0xaa03", ignore)
		if err != nil || undecided == nil || m.Resolution != nil {
			t.Fatalf("the market %+v has the unknown result %v and the error %v", m, undecided, err)
		}
		end.apply(m, undecided)
		if got := showMarket(m); !strings.HasSuffix(got, "Up=1005@0/false Down=1006@1/true resolution="+want) || m.Status != market.StatusResolved {
			t.Errorf("%s\n got %s\nwant the result %s", fields, got, want)
		}
	}
	row := `{"conditionId":"0xa1","question":"Q","description":"D","outcomes":["Yes","No"],"outcomePrices":["1","0"],"closed":true,"resolvedBy":"0xfeed",`
	equal(t, []string{
		readOne(t, row+`"clobTokenIds":["1","2"],"umaResolutionStatus":"settled","closedTime":"2030-04-20 02:07:01+00"}`),
		readOne(t, row+`"clobTokenIds":["1","2"],"umaResolutionStatus":"requested"}`),
	},
		"0xa1  RESOLVED/settled Yes=1@1/true No=2@0/false resolution=Yes,2030-04-20T02:07:01Z,0xfeed",
		"0xa1  CLOSED/requested Yes=1@1/- No=2@0/- summary")
}

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
