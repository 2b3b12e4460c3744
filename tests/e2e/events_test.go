package e2e

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

const searchEvents = `query($text: String! = "", $filter: MarketSearchFilter, $sort: MarketSort, $first: Int, $after: String) {
	searchEvents(query: $text, filter: $filter, sort: $sort, first: $first, after: $after) {
		edges { cursor node { id eventId slug title category } matches { marketId status category endsAt event { eventId } } }
		nodes { id }
		pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
		totalCount
	}
}`

// eventIDs returns the ids of the events on a page.
func eventIDs(data any) []string { return pluck(data, "searchEvents.edges", "node.eventId") }

// eventPages returns the ids of the events on all pages of a search.
func (s *service) eventPages(t *testing.T, v vars) (ids []string) {
	t.Helper()
	s.pages(t, searchEvents, "searchEvents", v, anonymous, func(page any) { ids = append(ids, pluck(page, "edges", "node.eventId")...) })
	return ids
}

// wantOnce fails the test if an id appears more than once, or if there are no ids.
func wantOnce(t *testing.T, ids []string) {
	t.Helper()
	if unique := slices.Compact(slices.Sorted(slices.Values(ids))); len(unique) != len(ids) || len(ids) == 0 {
		t.Errorf("the pages have %d events, of which %d are different", len(ids), len(unique))
	}
}

// TestSearchEvents checks a search for events at a venue that can only search markets. The events must have the same order as their
// first markets in the venue's search. Each event must be on one page only.
func TestSearchEvents(t *testing.T) {
	s := start(t)
	var all []string
	var data any
	v := vars{"filter": vars{"status": []string{"OPEN"}}, "sort": "VOLUME", "first": 7}
	wantCalls(t, s.callsDuring(func() { data = s.ask(t, searchEvents, v, anonymous) }), calls{"market-search": {1, 1}})
	first := eventIDs(data)
	if len(first) != 7 || at(data, "searchEvents.pageInfo.hasNextPage") != true || at(data, "searchEvents.pageInfo.hasPreviousPage") != false ||
		at(data, "searchEvents.edges.6.cursor") != at(data, "searchEvents.pageInfo.endCursor") || at(data, "searchEvents.totalCount") != nil {
		t.Errorf("the first page is wrong: %s", asJSON(data))
	}
	for _, e := range list(data, "searchEvents.edges") {
		if len(list(e, "matches")) == 0 {
			t.Errorf("an event has no matching market: %s", asJSON(e))
		}
		for _, m := range list(e, "matches") {
			if text(m, "status") != "OPEN" || text(m, "event.eventId") != text(e, "node.eventId") || text(m, "category") != text(e, "node.category") {
				t.Errorf("the market %s should not match, or belongs to another event than %s", asJSON(m), asJSON(e))
			}
		}
	}
	wantCalls(t, s.callsDuring(func() {
		v["after"] = at(data, "searchEvents.pageInfo.endCursor")
		data = s.ask(t, searchEvents, v, anonymous)
	}), calls{})
	v["after"] = nil
	made := s.callsDuring(func() { all = s.eventPages(t, v) })
	if made["market-search"][0] > 4 || len(made) > 1 { // there are five pages of markets, and the first one is cached
		t.Errorf("reading all pages took the calls %v, want at most 4 searches", made)
	}
	wantOnce(t, all)
	if !slices.Equal(all[:7], first) || !slices.Equal(all[7:14], eventIDs(data)) {
		t.Errorf("the first two pages have the events %v and %v, want the first 14 events of %v", first, eventIDs(data), all)
	}
	var want []string // the events of the open markets, the most traded market first
	s.pages(t, `query($after: String) { searchMarkets(filter: {status: [OPEN]}, sort: VOLUME, first: 100, after: $after) { nodes { event { eventId } } `+pageFields+` } }`,
		"searchMarkets", nil, anonymous, func(page any) {
			for _, m := range list(page, "nodes") {
				if id := text(m, "event.eventId"); id != "" && !slices.Contains(want, id) {
					want = append(want, id)
				}
			}
		})
	if !slices.Equal(all, want[:min(len(all), len(want))]) {
		t.Errorf("the search found the events %v\nwant %v", all, want)
	}
}

// TestSearchEventsToTheEnd checks that a search has a total count if the service has read the venue's list to its end. A search
// with invalid arguments must fail.
func TestSearchEventsToTheEnd(t *testing.T) {
	s := start(t)
	event := s.ask(t, `{ searchEvents(first: 1) { nodes { title } } }`, nil, anonymous)
	word := text(event, "searchEvents.nodes.0.title")
	data := s.ask(t, searchEvents, vars{"text": word, "first": 100}, anonymous)
	if n := len(eventIDs(data)); n == 0 || at(data, "searchEvents.pageInfo.hasNextPage") != false || asJSON(at(data, "searchEvents.totalCount")) != asJSON(n) {
		t.Errorf("the search for %q found %d events, but totalCount is %s", word, n, asJSON(at(data, "searchEvents.totalCount")))
	}
	for _, bad := range []vars{{"first": 0}, {"first": 101}, {"after": "x"}, {"text": strings.Repeat("x", 1001)}} {
		if _, errors := s.query(t, searchEvents, bad, anonymous); len(errors) != 1 || errors[0].Extensions.Code != "BAD_USER_INPUT" {
			t.Errorf("%v: got the errors %v, want one BAD_USER_INPUT", bad, errors)
		}
	}
}

// TestEventFields checks the fields of an event that the service takes from the event's markets.
func TestEventFields(t *testing.T) {
	s := start(t)
	var data any
	wantCalls(t, s.callsDuring(func() {
		data = s.ask(t, `{ searchEvents(first: 1, filter: {status: [OPEN]}) { nodes { status category image description volume24h markets { nodes { volume24h category } } } } }`, nil, anonymous)
	}), calls{"market-search": {2, 2}})
	e := at(data, "searchEvents.nodes.0")
	sum := new(big.Rat)
	for _, m := range list(e, "markets.nodes") {
		sum.Add(sum, number(t, at(m, "volume24h")))
	}
	wantNumber(t, "volume24h", at(e, "volume24h"), sum)
	if text(e, "status") != "OPEN" || text(e, "category") != text(e, "markets.nodes.0.category") || at(e, "image") != nil || at(e, "description") != nil {
		t.Errorf("the event has a wrong field: %s", asJSON(e))
	}
}

const categories = `{ categories { name category tag openMarkets complete } }`

// TestCategories checks the number of open markets in each category. The service makes at most five calls, so it must mark the
// numbers of a large venue as incomplete.
func TestCategories(t *testing.T) {
	s := start(t, "--demo-markets=200")
	var data any
	first := s.callsDuring(func() { data = s.ask(t, categories, nil, anonymous) })
	if first["market-search"][0] > 5 || len(first) != 1 {
		t.Errorf("the categories took the calls %v, want at most 5 searches", first)
	}
	want := map[string]int{}
	s.pages(t, `query($after: String) { searchMarkets(filter: {status: [OPEN]}, first: 100, after: $after) { nodes { category } `+pageFields+` } }`,
		"searchMarkets", nil, anonymous, func(page any) {
			for _, category := range pluck(page, "nodes", "category") {
				want[category]++
			}
		})
	got, previous := map[string]int{}, 1<<30
	for _, c := range list(data, "categories") {
		n := numberIn(t, asJSON(at(c, "openMarkets")))
		if got[text(c, "name")] = n; n > previous || at(c, "complete") != true || at(c, "tag") != nil || at(c, "category") != at(c, "name") {
			t.Errorf("the category has a wrong field or is not in order: %s", asJSON(c))
		}
		previous = n
	}
	if asJSON(got) != asJSON(want) || len(got) < 2 {
		t.Errorf("the open markets of the categories are %v, want %v", got, want)
	}
	s.clock.Advance(4 * 60e9)
	wantCalls(t, s.callsDuring(func() { s.ask(t, categories, nil, anonymous) }), calls{})

	large := start(t, "--demo-markets=1500")
	made := large.callsDuring(func() { data = large.ask(t, categories, nil, anonymous) })
	wantCalls(t, made, calls{"market-search": {5, 5}})
	for _, c := range list(data, "categories") {
		if at(c, "complete") != false {
			t.Errorf("the category is complete, although the venue has too many markets for five calls: %s", asJSON(c))
		}
	}
}

// TestPolymarketEvents checks lists of Polymarket's events, and searches by tag and by text. One call must return a list of
// complete events.
func TestPolymarketEvents(t *testing.T) {
	tool.CheckTier(t)
	s := startPolymarket(t)
	const query = `query($text: String! = "", $filter: MarketSearchFilter, $sort: MarketSort) { searchEvents(query: $text, filter: $filter, sort: $sort, first: 10) {
		edges { node { eventId title image description status volume24h markets { nodes { marketId } } } matches { marketId status tags } } } }`
	var data any
	made := s.requestsDuring(func() {
		data = s.ask(t, query, vars{"filter": vars{"status": []string{"OPEN"}}, "sort": "VOLUME_24H"}, anonymous)
	})
	if made["GET /events/keyset"] != 1 || len(made) != 1 {
		t.Errorf("the search made the requests %v, want one for a list of events", made)
	}
	edges := list(data, "searchEvents.edges")
	for i, e := range edges {
		if at(e, "node.image") == nil || at(e, "node.description") == nil || text(e, "node.status") != "OPEN" || len(list(e, "matches")) == 0 ||
			len(list(e, "node.markets.nodes")) < len(list(e, "matches")) {
			t.Errorf("the event has a wrong field or too few markets: %s", asJSON(e))
		}
		if i > 0 && number(t, at(e, "node.volume24h")).Cmp(number(t, at(edges[i-1], "node.volume24h"))) > 0 {
			t.Errorf("event %d has more volume than the previous event", i)
		}
	}
	topics := list(s.ask(t, categories, nil, anonymous), "categories")
	if len(topics) == 0 || at(topics[0], "category") != nil {
		t.Fatalf("there are no categories, or their tags are not tags of Polymarket: %s", asJSON(topics))
	}
	tag := text(topics[0], "tag")
	data = s.ask(t, query, vars{"filter": vars{"status": []string{"OPEN"}, "tag": tag}}, anonymous)
	for _, e := range list(data, "searchEvents.edges") {
		if !slices.Contains(list(e, "matches.0.tags"), any(tag)) {
			t.Errorf("the first market of the event %s has not the tag %s", asJSON(e), tag)
		}
	}
	word := text(edges[0], "node.title")
	made = s.requestsDuring(func() { data = s.ask(t, query, vars{"text": word}, anonymous) })
	if made["GET /public-search"] != 1 || at(data, "searchEvents.edges.0.node.eventId") == nil {
		t.Errorf("the search by text made the requests %v and found the events %s", made, asJSON(data))
	}
	wantOnce(t, s.eventPages(t, vars{"first": 40}))
	if _, errors := s.query(t, searchEvents, vars{"sort": "VOLUME"}, anonymous); len(errors) != 1 || errors[0].Extensions.Code != "UNSUPPORTED" {
		t.Errorf("a sorted search for open and closed events: got the errors %v, want UNSUPPORTED", errors)
	}
}

// TestKalshiEvents checks Kalshi's events and categories. A search by text must be unsupported.
func TestKalshiEvents(t *testing.T) {
	s := startKalshi(t)
	before, _ := kalshiCalls(t, s.App, nil)
	data := s.ask(t, searchEvents, vars{"filter": vars{"status": []string{"OPEN"}}, "first": 10}, anonymous)
	_, made := kalshiCalls(t, s.App, before)
	if made["/events"] != 1 || len(made) != 1 || len(eventIDs(data)) != 10 {
		t.Errorf("the first page took the calls %v, want one for 10 events: %s", made, asJSON(data))
	}
	wantOnce(t, s.eventPages(t, vars{"filter": vars{"status": []string{"OPEN"}}, "first": 10}))
	topics := list(s.ask(t, categories, nil, anonymous), "categories")
	sum := 0
	for _, c := range topics {
		sum += numberIn(t, asJSON(at(c, "openMarkets")))
	}
	if want := len(s.Demo.Kalshi.Tickers()); sum != want || at(topics[0], "complete") != true || at(topics[0], "category") == nil {
		t.Errorf("the categories have %d open markets, want %d: %s", sum, want, asJSON(topics))
	}
	category := text(topics[0], "name")
	data = s.ask(t, searchEvents, vars{"filter": vars{"category": category}}, anonymous)
	for _, e := range list(data, "searchEvents.edges") {
		if text(e, "node.category") != category {
			t.Errorf("the event is not of the category %s: %s", category, asJSON(e))
		}
	}
	if _, errors := s.query(t, searchEvents, vars{"text": "rain"}, anonymous); len(errors) != 1 || errors[0].Extensions.Code != "UNSUPPORTED" {
		t.Errorf("a search by text: got the errors %v, want UNSUPPORTED", errors)
	}
}
