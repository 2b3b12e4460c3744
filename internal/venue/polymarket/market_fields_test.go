package polymarket

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// rowOf returns the row of a JSON object. The row appends its drift to the list notes.
func rowOf(t *testing.T, text string, notes *[]string) *wire.Row {
	t.Helper()
	v, err := wire.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return wire.NewRow(v, func(note string) {
		if notes != nil {
			*notes = append(*notes, note)
		}
	})
}

// allOf returns all fields of a market as text, one in each line.
func allOf(m *market.Market) []string {
	out := []string{
		"id " + m.MarketID, "slug " + m.Slug, "question " + m.Question, "group " + m.GroupItemTitle, "description " + m.Description, "image " + m.Image,
		"category " + m.Category, "tags " + strings.Join(m.Tags, ","), "event " + m.EventID + " " + m.EventSlug + " " + m.EventTitle,
		"accepting " + tool.Text(m.AcceptingOrders), "starts " + tool.Text(m.StartsAt), "ends " + tool.Text(m.EndsAt), "updated " + tool.Text(m.UpdatedAt),
		"volume " + tool.Text(m.Volume), "volume24h " + tool.Text(m.Volume24h), "liquidity " + tool.Text(m.Liquidity), "tick " + tool.Text(m.TickSize),
		"min " + tool.Text(m.MinOrderSize), "status " + string(m.Status) + "/" + m.StatusRaw, "summary " + fmt.Sprint(m.Summary),
	}
	for _, o := range m.Outcomes {
		out = append(out, "outcome "+o.TokenID+" "+o.Label+" "+tool.Text(o.Price)+" "+tool.Text(o.Winner))
	}
	return out
}

// fullMarket is a row with all members of a Gamma market that the driver reads. Each has a value of its own.
const fullMarket = `{
	"id": "501", "conditionId": "0xaa01", "slug": "a-slug", "question": "A question?", "groupItemTitle": "A group", "description": "A description.",
	"image": "https://a.invalid/image", "icon": "https://a.invalid/icon", "category": "A category", "tags": [{"label": "Tag One", "slug": "tag-one"}, "Tag Two", {"slug": "tag-three"}],
	"events": [{"id": 31, "slug": "an-event", "title": "An event", "image": "https://a.invalid/event", "category": "Of the event", "tags": ["Of the event"],
		"startDate": "2029-01-01T00:00:00Z", "endDate": "2029-02-01T00:00:00Z"}, {"id": "32"}],
	"acceptingOrders": true, "active": true, "closed": false, "umaResolutionStatus": "proposed",
	"startDate": "2030-01-02T03:04:05Z", "startDateIso": "2030-01-01", "endDate": "2030-02-03T04:05:06.5Z", "endDateIso": "2030-02-01", "updatedAt": "2030-01-20T00:00:00Z",
	"volume": "1000.5", "volumeNum": 1000.25, "volume24hr": 24.5, "liquidity": "77.5", "liquidityNum": 77.25, "orderPriceMinTickSize": 0.001, "orderMinSize": 15,
	"outcomes": "[\"Up\", \"Down\"]", "outcomePrices": "[\"0.3\", \"0.7\"]", "clobTokenIds": "[\"11\", \"12\"]", "version": "v1"
}`

func TestEveryFieldOfAMarket(t *testing.T) {
	var notes []string
	r := rowOf(t, fullMarket, &notes)
	m, undecided := readMarket(r, nil)
	if r.Err != nil || undecided != nil || m.Resolution != nil {
		t.Fatalf("the row has the error %v and the results %v and %v", r.Err, undecided, m.Resolution)
	}
	equal(t, allOf(m),
		"id 0xaa01", "slug a-slug", "question A question?", "group A group", "description A description.", "image https://a.invalid/image", "category A category",
		"tags Tag One,Tag Two,tag-three", "event 31 an-event An event", "accepting true", "starts 2030-01-02T03:04:05Z", "ends 2030-02-03T04:05:06.5Z",
		"updated 2030-01-20T00:00:00Z", "volume 1000.5", "volume24h 24.5", "liquidity 77.5", "tick 0.001", "min 15", "status OPEN/proposed", "summary false",
		"outcome 11 Up 0.3 -", "outcome 12 Down 0.7 -")
	equal(t, notes)
}

// without returns a row without some members.
func without(t *testing.T, row string, members ...string) string {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(row), &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range members {
		delete(object, name)
	}
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestSecondNamesAndTheEvent checks the members that count if others are missing: those with a second name, and those of the event.
func TestSecondNamesAndTheEvent(t *testing.T) {
	second := without(t, fullMarket, "image", "startDate", "endDate", "volume", "liquidity", "orderPriceMinTickSize", "orderMinSize", "slug")
	second = strings.TrimSuffix(second, "}") + `,"marketSlug":"second-slug","minimumTickSize":"0.01","minimumOrderSize":"5"}`
	m, _ := readMarket(rowOf(t, second, nil), nil)
	equal(t, pick(allOf(m), "slug", "image", "starts", "ends", "volume", "liquidity", "tick", "min", "category"),
		"slug second-slug", "image https://a.invalid/icon", "category A category", "starts 2030-01-01T00:00:00Z", "ends 2030-02-01T00:00:00Z", "volume 1000.25",
		"liquidity 77.25", "tick 0.01", "min 5")

	ofEvent := without(t, fullMarket, "image", "icon", "category", "tags", "startDate", "startDateIso", "endDate", "endDateIso")
	m, _ = readMarket(rowOf(t, ofEvent, nil), nil)
	equal(t, pick(allOf(m), "image", "category", "tags", "starts", "ends", "event"),
		"image https://a.invalid/event", "category Of the event", "tags Of the event", "event 31 an-event An event", "starts 2029-01-01T00:00:00Z", "ends 2029-02-01T00:00:00Z")

	m, _ = readMarket(rowOf(t, ofEvent, nil), rowOf(t, `{"id":"99","slug":"outer","title":"Outer","icon":"https://a.invalid/outer","endDate":"2031-01-01T00:00:00Z"}`, nil))
	equal(t, pick(allOf(m), "image", "category", "tags", "starts", "ends", "event"),
		"image https://a.invalid/outer", "category ", "tags ", "event 99 outer Outer", "starts -", "ends 2031-01-01T00:00:00Z")

	for events, want := range map[string]string{`"events":[],`: "event   ", `"events":null,`: "event   ", ``: "event   "} {
		m, _ = readMarket(rowOf(t, `{"conditionId":"0xa1","question":"Q",`+events+`"outcomes":["Yes","No"]}`, nil), nil)
		equal(t, pick(allOf(m), "event", "starts", "summary"), want, "starts -", "summary true")
	}
}

// pick returns the lines that begin with one of the names.
func pick(lines []string, names ...string) (out []string) {
	for _, line := range lines {
		for _, name := range names {
			if strings.HasPrefix(line, name+" ") {
				out = append(out, line)
			}
		}
	}
	return out
}

func TestBadMembersOfAMarket(t *testing.T) {
	for replacement, want := range map[string]string{
		`"question":""`:                             "bad: question is missing",
		`"question":7`:                              "bad: question is missing drift: question unreadable",
		`"conditionId":[]`:                          "bad: conditionId is not an id",
		`"volume":"much"`:                           "bad: volume is not a number",
		`"volume24hr":"much"`:                       "bad: volume24h is not a number",
		`"outcomes":null`:                           "bad: outcomes are missing or do not match their tokens",
		`"outcomes":"[]"`:                           "bad: outcomes are missing or do not match their tokens",
		`"outcomes":["Up",""]`:                      "bad: outcomes have no label",
		`"outcomes":["Up",null]`:                    "bad: outcomes have no label",
		`"tags":[7,{"id":"1"},{"label":""},"Rain"]`: "0xaa01 a-slug OPEN/proposed Up=11@0.3/- Down=12@0.7/- drift: tags unreadable, tags unreadable, tags unreadable",
		`"outcomePrices":["0.3","1.5"]`:             "0xaa01 a-slug OPEN/proposed Up=11@0.3/- Down=12@-/- drift: outcomePrices unreadable",
		`"outcomePrices":["x","0.7"]`:               "0xaa01 a-slug OPEN/proposed Up=11@-/- Down=12@0.7/- drift: outcomePrices unreadable",
		`"outcomePrices":["0.3"]`:                   "0xaa01 a-slug OPEN/proposed Up=11@-/- Down=12@-/-",
		`"outcomePrices":null`:                      "0xaa01 a-slug OPEN/proposed Up=11@-/- Down=12@-/-",
		`"startDate":"soon"`:                        "0xaa01 a-slug OPEN/proposed Up=11@0.3/- Down=12@0.7/- drift: startDate unreadable",
		`"active":"perhaps"`:                        "0xaa01 a-slug UNKNOWN/proposed Up=11@0.3/- Down=12@0.7/- drift: active unreadable",
		`"active":false`:                            "0xaa01 a-slug UNKNOWN/proposed Up=11@0.3/- Down=12@0.7/-",
		`"active":null`:                             "0xaa01 a-slug UNKNOWN/proposed Up=11@0.3/- Down=12@0.7/-",
		`"umaResolutionStatus":"Disputed"`:          "0xaa01 a-slug DISPUTED/Disputed Up=11@0.3/- Down=12@0.7/-",
		`"umaResolutionStatus":"challenged"`:        "0xaa01 a-slug DISPUTED/challenged Up=11@0.3/- Down=12@0.7/-",
		`"description":""`:                          "0xaa01 a-slug OPEN/proposed Up=11@0.3/- Down=12@0.7/-",
	} {
		name := strings.Trim(strings.SplitN(replacement, ":", 2)[0], `"`)
		row := strings.TrimSuffix(without(t, fullMarket, name), "}") + "," + replacement + "}"
		if got := readOne(t, row); got != want {
			t.Errorf("%s\n got %s\nwant %s", replacement, got, want)
		}
	}
}

// TestTokensOfABadMarket checks that a market that cannot be read still names its tokens.
func TestTokensOfABadMarket(t *testing.T) {
	r := rowOf(t, `{"conditionId":"0xa1","clobTokenIds":"[\"1015\"]","outcomes":["Yes","No"]}`, nil)
	if readMarket(r, nil); r.Err == nil || !slices.Equal(tokenIDs(r), []string{"1015"}) {
		t.Errorf("the row has the error %v and the tokens %q, want an error and 1015", r.Err, tokenIDs(r))
	}
}

// TestResultsOfGamma checks each form of a result.
func TestResultsOfGamma(t *testing.T) {
	head := `{"conditionId":"0xa1","question":"Q","description":"D","clobTokenIds":["1","2"],"outcomes":["Yes","No"],"closedTime":"2030-04-20T02:07:01Z","resolutionSource":"S",`
	const won, lost = "RESOLVED/resolved Yes=1@1/true No=2@0/false resolution=Yes,2030-04-20T02:07:01Z,S", "RESOLVED/resolved Yes=1@0/false No=2@1/true resolution=No,2030-04-20T02:07:01Z,S"
	for fields, want := range map[string]string{
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["1","0"]`:        won,
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["0","1.000"]`:    strings.Replace(lost, "@1/", "@1.000/", 1),
		`"closed":"true","umaResolutionStatus":"resolved","outcomePrices":["1","0"]`:      won,
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["1","1"]`:        "CLOSED/resolved Yes=1@1/- No=2@1/- summary undecided",
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["0","0"]`:        "CLOSED/resolved Yes=1@0/- No=2@0/- summary undecided",
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["1","0.0001"]`:   "CLOSED/resolved Yes=1@1/- No=2@0.0001/- summary undecided",
		`"closed":true,"umaResolutionStatus":"resolved"`:                                  "CLOSED/resolved Yes=1@-/- No=2@-/- summary undecided",
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["0.5","0.50"]`:   "CANCELLED/resolved Yes=1@0.5/- No=2@0.50/- resolution=,2030-04-20T02:07:01Z,S",
		`"closed":true,"umaResolutionStatus":"resolved","outcomePrices":["0.5","0.4"]`:    "CLOSED/resolved Yes=1@0.5/- No=2@0.4/- summary undecided",
		`"closed":true,"umaResolutionStatus":"proposed","outcomePrices":["1","0"]`:        "CLOSED/proposed Yes=1@1/- No=2@0/- summary undecided",
		`"closed":true,"umaResolutionStatus":"proposed","outcomePrices":["0.5","0.5"]`:    "CLOSED/proposed Yes=1@0.5/- No=2@0.5/- summary undecided",
		`"closed":true,"umaResolutionStatus":"disputed","outcomePrices":["1","0"]`:        "DISPUTED/disputed Yes=1@1/- No=2@0/- summary undecided",
		`"closed":false,"umaResolutionStatus":"disputed","outcomePrices":["1","0"]`:       "DISPUTED/disputed Yes=1@1/- No=2@0/-",
		`"active":true,"umaResolutionStatus":"resolved","outcomePrices":["1","0"]`:        "OPEN/resolved Yes=1@1/- No=2@0/-",
		`"active":true,"umaResolutionStatus":"resolved","outcomePrices":["0.5","0.5"]`:    "OPEN/resolved Yes=1@0.5/- No=2@0.5/-",
		`"active":true,"closed":true,"outcomePrices":["1","0"],"umaResolutionStatus":""`:  "CLOSED/ Yes=1@1/- No=2@0/- summary undecided",
		`"active":false,"closed":false,"outcomePrices":["1","0"],"acceptingOrders":false`: "UNKNOWN/ Yes=1@1/- No=2@0/-",
	} {
		m, undecided := readMarket(rowOf(t, head+fields+"}", nil), nil)
		got := showMarket(m)
		if undecided != nil {
			got += " undecided"
		}
		if want = "0xa1  " + want; got != want {
			t.Errorf("%s\n got %s\nwant %s", fields, got, want)
		}
	}
	three := []market.Outcome{{Price: &half}, {Price: &half}, {Price: &half}}
	if equalPrices(three) || !equalPrices(three[:2]) {
		t.Error("equalPrices is true for three outcomes or false for two")
	}
}

func TestSlugs(t *testing.T) {
	for label, want := range map[string]string{"Crypto Prices": "crypto-prices", "2024 Élection/a-z 09": "2024-lection-a-z-09", " — ": "", "`{A}z[Z]@": "a-z-z", "/09:": "09"} {
		if got := slugOf(label); got != want {
			t.Errorf("slugOf(%q) returns %q, want %q", label, got, want)
		}
	}
}
