package polymarket

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// TestEveryFieldOfAnEvent reads an event with all members that the driver reads, each with a value of its own.
func TestEveryFieldOfAnEvent(t *testing.T) {
	v, err := wire.Parse([]byte(`{"id":"77","slug":"an-event","title":"An event","description":"About it.","image":"https://a.invalid/image","icon":"https://a.invalid/icon","category":"A category",
		"negRisk":true,"tags":[{"label":"Tag"}],"startDate":"2030-01-01T00:00:00Z","endDate":"2030-11-05T00:00:00Z","markets":[` + fullMarket + `,{"question":"bad"},7]}`))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	row, err := readEvent(v, func(note string) { notes = append(notes, note) })
	if err != nil {
		t.Fatal(err)
	}
	e := row.toEvent(upstream.EndpointEvent)
	equal(t, []string{e.EventID, e.Slug, e.Title, e.Description, e.Image, e.Category, tool.Text(e.Exclusive), fmt.Sprint(len(e.Markets)), e.Markets[0].EventID},
		"77", "an-event", "An event", "About it.", "https://a.invalid/image", "A category", "true", "1", "77")
	equal(t, notes, "bad row", "bad row")
	var left []string
	for _, err := range e.LeftOut {
		left = append(left, err.Error())
	}
	equal(t, left, "UPSTREAM_BAD_RESPONSE: market 2 of the venue's answer could not be read and is left out (event): id is missing",
		"UPSTREAM_BAD_RESPONSE: market 3 of the venue's answer could not be read and is left out (event): the element is not an object")

	for text, want := range map[string]string{
		`{"id":5,"markets":[]}`: "5   exclusive - ", `{"id":"5","slug":"s","title":"T","negRisk":false,"icon":"I","markets":[]}`: "5 s T exclusive false I",
		`{"id":"5","negRisk":"true","markets":[]}`: "5   exclusive true ", `{"slug":"s","markets":[]}`: "id is missing", `{"id":"5"}`: "markets are missing",
		`{"id":"5","markets":null}`: "markets are missing", `{"id":"5","markets":"[]"}`: "markets are missing", `7`: "the element is not an object",
	} {
		v, _ := wire.Parse([]byte(text))
		row, err := readEvent(v, ignore)
		got := errText(err)
		if err == nil {
			got = fmt.Sprint(row.event.EventID, " ", row.event.Slug, " ", row.event.Title, " exclusive ", tool.Text(row.event.Exclusive), " ", row.event.Image)
		}
		if got != want {
			t.Errorf("%s: readEvent gives %q, want %q", text, got, want)
		}
	}
}

// TestPlaceholders checks which markets of an event and of a list of markets are left out. Only augmented events have placeholders.
func TestPlaceholders(t *testing.T) {
	for fields, want := range map[string]bool{
		`"groupItemTitle":"Person A","active":false`:                       true,
		`"groupItemTitle":"Person AB","active":false,"volume":"0"`:         true,
		`"groupItemTitle":"X","active":"false"`:                            true,
		`"groupItemTitle":"Person ABC","active":false`:                     false,
		`"groupItemTitle":"PersonA","active":false`:                        false,
		`"groupItemTitle":"Person a","active":false`:                       false,
		`"groupItemTitle":"Person A","active":true`:                        false,
		`"groupItemTitle":"Person A","active":null`:                        false,
		`"groupItemTitle":"Person A","active":false,"volume":"0.01"`:       false,
		`"groupItemTitle":"Other","negRiskOther":true,"active":true`:       true,
		`"groupItemTitle":"Other","negRiskOther":false,"active":true`:      false,
		`"groupItemTitle":"Smith","negRiskOther":true,"volume":"9"`:        true,
		`"groupItemTitle":"Person A","active":false,"conditionId":{}`:      false, // a bad row, which the event reports
		`"groupItemTitle":"Other","negRiskOther":true,"conditionId":false`: true,
	} {
		row := `{"conditionId":"0xa1","question":"Q","outcomes":["Yes","No"],` + fields + `}`
		if strings.Contains(fields, "conditionId") {
			row = `{"question":"Q","outcomes":["Yes","No"],` + fields + `}`
		}
		for _, augmented := range []bool{true, false} {
			v, err := wire.Parse([]byte(fmt.Sprintf(`{"id":"5","negRiskAugmented":%v,"markets":[%s]}`, augmented, row)))
			if err != nil {
				t.Fatal(err)
			}
			e, err := readEvent(v, ignore)
			if err != nil || (len(e.rows) == 0) != (want && augmented) {
				t.Errorf("%s, augmented %v: the event has %d markets and the error %v; is a placeholder: want %v", fields, augmented, len(e.rows), err, want)
			}
			if v, err = wire.Parse([]byte(strings.TrimSuffix(row, "}") + fmt.Sprintf(`,"events":[{"id":"5","negRiskAugmented":%v}]}`, augmented))); err != nil {
				t.Fatal(err)
			}
			if isListed(marketRows([]wire.Value{v}, nil, ignore)[0]) == (want && augmented) {
				t.Errorf("%s, augmented %v: a list shows the placeholder, or leaves out the market", fields, augmented)
			}
		}
	}
}

// TestFormsOfMarketLists checks the frame of a keyset list.
func TestFormsOfMarketLists(t *testing.T) {
	for text, want := range map[string]string{
		`{"markets":null}`: "0 rows ", `{"markets":[],"next_cursor":null}`: "0 rows ", `{"markets":[7],"next_cursor":"C"}`: "1 rows C", `{"markets":[],"nextCursor":"C"}`: "0 rows ",
		`{}`: errNoMarkets.Error(), `[]`: errNoMarkets.Error(), `{"markets":{}}`: errNoMarkets.Error(), `{"markets":[],"next_cursor":7}`: errUnreadablePager.Error(),
		`{"markets":[],"next_cursor":"` + strings.Repeat("c", rest.MaxCursor+1) + `"}`: errUnreadablePager.Error(),
	} {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		rows, next, err := readMarkets(v, ignore)
		got := fmt.Sprintf("%d rows %s", len(rows), next)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60s: got %q, want %q", text, got, want)
		}
	}
	if _, err := readEvents(wire.Value{}); err != errNoEvents {
		t.Errorf("readEvents of nothing gives the error %v, want %v", err, errNoEvents)
	}
}

// TestConditionsOfASearch checks each condition of a search on its own, and the lists of Gamma that a status needs.
func TestConditionsOfASearch(t *testing.T) {
	end := time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	m := &market.Market{Status: market.StatusOpen, EndsAt: end, Tags: []string{"Crypto Prices"}}
	for _, test := range []struct {
		q    queries.Search
		want bool
	}{
		{queries.Search{}, true},
		{queries.Search{Status: []market.Status{market.StatusOpen, market.StatusClosed}}, true},
		{queries.Search{Status: []market.Status{market.StatusClosed}}, false},
		{queries.Search{Tag: "crypto-prices"}, true},
		{queries.Search{Tag: "crypto"}, false},
		{queries.Search{EndsAfter: queries.At(end)}, true},
		{queries.Search{EndsAfter: queries.At(end.Add(time.Second))}, false},
		{queries.Search{EndsBefore: queries.At(end)}, true},
		{queries.Search{EndsBefore: queries.At(end.Add(-time.Second))}, false},
	} {
		if got := matches(m, test.q); got != test.want {
			t.Errorf("matches returns %v for %+v, want %v", got, test.q, test.want)
		}
	}
	for status, want := range map[market.Status][2]bool{
		market.StatusOpen: {true, false}, market.StatusUpcoming: {true, false}, market.StatusUnknown: {true, false}, market.StatusDisputed: {true, true},
		market.StatusClosed: {false, true}, market.StatusResolved: {false, true}, market.StatusCancelled: {false, true},
	} {
		if open, closed := sides([]market.Status{status}); [2]bool{open, closed} != want {
			t.Errorf("sides of %s returns %v and %v, want %v", status, open, closed, want)
		}
	}
	if open, closed := sides(nil); !open || !closed {
		t.Error("a search without a status does not read both lists")
	}
	if open, closed := sides([]market.Status{market.StatusClosed, market.StatusOpen}); !open || !closed {
		t.Error("a search for open and closed markets does not read both lists")
	}
}

// TestPagesOfASearchByText checks the rows of a page of events: duplicates, unreadable rows and the conditions of the search.
func TestPagesOfASearchByText(t *testing.T) {
	row := func(id, more string) string {
		return `{"conditionId":"` + id + `","question":"Q","outcomes":["Yes","No"],"active":true` + more + `}`
	}
	event := func(id string, rows ...string) string {
		return `{"id":"` + id + `","slug":"s","title":"T","markets":[` + strings.Join(rows, ",") + `]}`
	}
	open := queries.Search{Status: []market.Status{market.StatusOpen}}
	for text, want := range map[string][2]string{
		`[` + event("1", row("0xa1", ""), row("0xa2", `,"closed":true`)) + `,` + event("2", row("0xa1", ""), row("0xa3", "")) + `]`: {"0xa1 0xa3; ", "1:0xa1/2 2:0xa1,0xa3/2; "},
		`[` + event("1", row("0xa1", ""), `{"question":"bad"}`) + `,7]`:                                                             {"0xa1; market 2 of row 1|row 2; bad row|bad row", "1:0xa1/1; row 2; bad row|bad row"},
		`[` + event("1", row("0xa1", "")) + `,` + event("1", row("0xa2", "")) + `]`:                                                 {"0xa1 0xa2; ", "1:0xa1/1; "},
		`[` + event("1", row("0xa2", `,"closed":true`)) + `]`:                                                                       {"; ", "; "},
		`[]`:    {"; ", "; "},
		`[7,8]`: {"UPSTREAM_BAD_RESPONSE", "UPSTREAM_BAD_RESPONSE"},
		`[` + event("1", `{"question":"bad"}`) + `]`: {"UPSTREAM_BAD_RESPONSE", "; ; bad row"},
		`7`: {"UPSTREAM_BAD_RESPONSE", "UPSTREAM_BAD_RESPONSE"},
	} {
		v, err := wire.Parse([]byte(`{"events":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := searched(v, open); got != want[0] {
			t.Errorf("%s\n got %s\nwant %s", text, got, want[0])
		}
		if got := foundIn(t, v, open); got != want[1] {
			t.Errorf("events of %s\n got %s\nwant %s", text, got, want[1])
		}
	}
}

// where returns the rows in a list of errors.
func where(left market.LeftOut) string {
	var out []string
	for _, err := range left {
		out = append(out, strings.Split(strings.TrimPrefix(err.Error(), "UPSTREAM_BAD_RESPONSE: "), " of the venue's answer")[0])
	}
	return strings.Join(out, "|")
}

func searched(v wire.Value, q queries.Search) string {
	var n rest.Drift
	page, err := readSearch(v, q, &n)
	if err != nil {
		return string(market.CodeOf(err))
	}
	var ids []string
	for _, m := range page.Markets {
		ids = append(ids, m.MarketID)
	}
	return withDrift(strings.Join(ids, " ")+"; "+where(page.LeftOut), n)
}

func withDrift(text string, n rest.Drift) string {
	if len(n) == 0 {
		return text
	}
	return text + "; " + strings.Join(n, "|")
}

func foundIn(t *testing.T, v wire.Value, q queries.Search) string {
	t.Helper()
	drift := &drifts{}
	d, err := New(rest.Config{Observer: drift})
	if err != nil {
		t.Fatal(err)
	}
	page, err := d.readFound(v, q)
	if err != nil {
		return string(market.CodeOf(err))
	}
	var out []string
	for _, e := range page.Events {
		var ids []string
		for _, m := range e.Matches {
			if !m.Summary || m.Description != "" {
				t.Errorf("the market %s of a found event is no summary", m.MarketID)
			}
			ids = append(ids, m.MarketID)
		}
		if !e.Whole {
			t.Errorf("the event %s is not whole", e.EventID)
		}
		out = append(out, fmt.Sprintf("%s:%s/%d", e.EventID, strings.Join(ids, ","), len(e.Markets)))
	}
	return withDrift(strings.Join(out, " ")+"; "+where(page.LeftOut), drift.list)
}

// drifts is an observer that collects the drift.
type drifts struct{ list rest.Drift }

func (*drifts) Call(upstream.HTTPCall, error) {}
func (d *drifts) Drift(_, what string)        { d.list = append(d.list, what) }
