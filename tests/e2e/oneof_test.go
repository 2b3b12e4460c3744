package e2e

import (
	"strings"
	"testing"
)

// TestOneOfInputs checks @oneOf input objects of markets, events and fill estimates. The service must refuse an object with no
// member or with two members. It must also refuse an object together with an older argument, such as marketId or size.
func TestOneOfInputs(t *testing.T) {
	t.Parallel()
	s := start(t)
	const find = `{ searchMarkets(first: 1, filter: { status: OPEN }) { nodes { marketId slug event { eventId slug } tokens { tokenId } } } }`
	found := s.ask(t, find, nil, anonymous)
	m := at(found, "searchMarkets.nodes.0")
	const query = `query($m: MarketBy!, $s: MarketBy!, $e: EventBy!, $id: String!, $t: String!, $f: FillFor!) {
		byID: market(by: $m) { marketId } bySlug: market(by: $s) { marketId } byMember: market(by: { marketId: $id }) { marketId }
		event(by: $e) { eventId }
		token(tokenId: $t) { old: fillEstimate(side: BUY, size: 10) { cost } new: fillEstimate(side: BUY, for: { size: "10" }) { cost } given: fillEstimate(side: BUY, for: $f) { cost } } }`
	id := text(m, "marketId")
	values := vars{
		"m": vars{"marketId": id}, "s": vars{"slug": text(m, "slug")}, "id": id, "e": vars{"eventId": text(m, "event.eventId")},
		"t": text(m, "tokens.0.tokenId"), "f": vars{"size": 10},
	}
	got := s.ask(t, query, values, anonymous)
	for _, path := range []string{"byID.marketId", "bySlug.marketId", "byMember.marketId"} {
		wantText(t, got, path, id)
	}
	wantText(t, got, "event.eventId", text(m, "event.eventId"))
	cost := text(got, "token.old.cost")
	wantText(t, got, "token.new.cost", cost)
	wantText(t, got, "token.given.cost", cost)

	for _, bad := range []struct{ name, query, want string }{
		{"no argument", `{ market { id } }`, "give exactly one of marketId and slug"},
		{"both forms", `{ market(marketId: "1", by: { slug: "a" }) { id } }`, "give only one of marketId, slug and by"},
		{"two members", `{ event(by: { eventId: "1", slug: "a" }) { id } }`, "must specify exactly one key"},
		{"no member", `{ event(by: {}) { id } }`, "must specify exactly one key"},
		{"size and for", `{ token(tokenId: "1") { fillEstimate(side: BUY, size: 1, for: { amount: 1 }) { cost } } }`, "give only one of size, amount and for"},
	} {
		if message := s.refusal(t, bad.query, nil); !strings.Contains(message, bad.want) {
			t.Errorf("%s: got the message %q, want one that contains %q", bad.name, message, bad.want)
		}
	}
	const byVariable = `query($by: MarketBy!) { market(by: $by) { id } }`
	for _, by := range []vars{{}, {"marketId": nil}, {"marketId": "1", "slug": nil}, {"marketId": "1", "slug": "a"}} {
		if message := s.refusal(t, byVariable, vars{"by": by}); !strings.Contains(message, "variable $by: must have exactly one field") {
			t.Errorf("%v: got the message %q, want one that says that one field must be set", by, message)
		}
	}
}

// refusal returns the message of the only error of a query.
func (s *service) refusal(t *testing.T, query string, variables vars) string {
	t.Helper()
	_, errs := s.query(t, query, variables, anonymous)
	if len(errs) != 1 {
		t.Fatalf("%s: got %d errors, want one: %+v", query, len(errs), errs)
	}
	return errs[0].Message
}
