package e2e

import (
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph/model"
)

// TestGlobalIDsNameTheVenue checks that the global ids of a token and of a user differ between venues. A service must find the
// objects of its own venue by id, and refuse the ids of other venues.
func TestGlobalIDsNameTheVenue(t *testing.T) {
	t.Parallel()
	generic := start(t)
	services := map[string]*service{
		"polymarket": start(t, "--venue-driver=polymarket", "--demo-driver=polymarket", "--demo-control=false", "--demo-markets=60"),
		"kalshi":     startKalshi(t),
	}
	const idsQuery = `{ token(tokenId: "123") { id } user(address: "0x1111111111111111111111111111111111111111") { id } }`
	genericData := generic.ask(t, idsQuery, nil, anonymous)
	genericIDs := []string{model.EncodeID(model.KindToken, "123"), model.EncodeID(model.KindUser, "0x1111111111111111111111111111111111111111")}
	if got := []string{text(genericData, "token.id"), text(genericData, "user.id")}; !slices.Equal(got, genericIDs) {
		t.Errorf("the ids of the generic driver are %q, want %q", got, genericIDs)
	}
	foreign := map[string]string{"generic": genericIDs[0]}
	for name, s := range services {
		data := s.ask(t, idsQuery, nil, anonymous)
		if got, want := []string{text(data, "token.id"), text(data, "user.id")}, []string{name + "." + genericIDs[0], name + "." + genericIDs[1]}; !slices.Equal(got, want) {
			t.Errorf("the ids of %s are %q, want %q", name, got, want)
		}
		foreign[name] = text(data, "token.id")
		markets := s.ask(t, `{ searchMarkets(first: 1, filter: { status: [OPEN] }) { nodes { id marketId venue event { id } tokens { id tokenId } } } }`, nil, anonymous)
		market := at(markets, "searchMarkets.nodes.0")
		ids := []string{text(market, "id"), text(market, "event.id"), text(market, "tokens.0.id")}
		nodes := s.ask(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Market { venue marketId } ... on Token { tokenId } } }`, vars{"ids": ids}, anonymous)
		if got := pluck(nodes, "nodes", "id"); !slices.Equal(got, ids) || !strings.HasPrefix(ids[1], name+".") {
			t.Errorf("%s: the query for the nodes %q returned the nodes %q, want the same ids and a prefix %s.", name, ids, got, name)
		}
		if text(market, "venue") != name || text(nodes, "nodes.0.venue") != name || at(nodes, "nodes.0.marketId") != at(market, "marketId") || at(nodes, "nodes.2.tokenId") != at(market, "tokens.0.tokenId") {
			t.Errorf("%s: the nodes are %v, want the market and the token of %v", name, nodes, market)
		}
	}
	services["generic"] = generic
	for own, s := range services {
		for other, id := range foreign {
			data, failed := s.query(t, `query ($id: ID!) { node(id: $id) { id } }`, vars{"id": id}, anonymous)
			if own == other {
				if len(failed) > 0 || text(data, "node.id") != id {
					t.Errorf("%s: the id %s got %v and the errors %v, want the node with this id", own, id, data, failed)
				}
				continue
			}
			if len(failed) != 1 || failed[0].Extensions.Code != "BAD_USER_INPUT" || !strings.Contains(failed[0].Message, own) || !strings.Contains(failed[0].Message, other) {
				t.Errorf("an id of %s got the errors %v from the service of %s, want BAD_USER_INPUT that names both venues", other, failed, own)
			}
		}
	}
	if venue, ok := at(generic.ask(t, `{ searchMarkets(first: 1) { nodes { venue } } }`, nil, anonymous), "searchMarkets.nodes.0.venue").(string); ok {
		t.Errorf("a market of the generic driver has the venue %q, want null", venue)
	}
}

// TestPositionIDsNameTheVenue checks that the id of a position names the venue, and that a client can subscribe to the position by
// this id.
func TestPositionIDsNameTheVenue(t *testing.T) {
	t.Parallel()
	s := startPolymarket(t)
	const page = `query($a: Address!) { user(address: $a) { positions(first: 1) { nodes { id } } } }`
	id := text(s.ask(t, page, vars{"a": addressOf50}, anonymous), "user.positions.nodes.0.id")
	const query = `subscription($a: Address!, $ids: [ID!]) { portfolioChanged(address: $a, positionIds: $ids) { reason changed { id } } }`
	first := s.dial(t, anonymous).subscribe(t, query, vars{"a": addressOf50, "ids": []any{id}}).value(t)
	if got := pluck(first, "changed", "id"); text(first, "reason") != "INITIAL" || !slices.Equal(got, []string{id}) || !strings.HasPrefix(id, "polymarket.") {
		t.Errorf("the first event is %v, want INITIAL with the position %s", first, id)
	}
}
