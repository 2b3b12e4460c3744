package polymarket

import (
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
