package e2e

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph/model"
)

const entitiesQuery = `query ($of: [_Any!]!) {
  _entities(representations: $of) {
    __typename
    ... on Market { marketId }
    ... on Token { tokenId price { price } }
    ... on User { address balance { id } }
    ... on Position { size }
  }
}`

// representations returns the representations of objects of one type for the given global ids.
func representations(typename string, ids ...string) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = map[string]any{"__typename": typename, "id": id}
	}
	return out
}

// nodeIDs returns the global ids of objects of one kind.
func nodeIDs(kind string, ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = model.EncodeID(kind, id)
	}
	return out
}

// TestFederationIsOff checks that the schema has no types and fields for Apollo Federation without --federation.
func TestFederationIsOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, query := range []string{`{ _service { sdl } }`, `{ _entities(representations: []) { __typename } }`} {
		if _, errors := s.query(t, query, nil, anonymous); len(errors) != 1 || errors[0].Extensions.Code != "GRAPHQL_VALIDATION_FAILED" {
			t.Errorf("%s: got the errors %v, want GRAPHQL_VALIDATION_FAILED", query, errors)
		}
	}
	types := pluck(s.ask(t, `{ __schema { types { name } } }`, nil, anonymous), "__schema.types", "name")
	if slices.ContainsFunc(types, func(name string) bool { return name == "_Any" || name == "_Entity" || name == "_Service" }) {
		t.Errorf("without --federation, introspection shows the types %v", types)
	}
}

// TestServiceSDL checks that _service returns the same SDL as the command schema --federation, with a key for each type that
// implements Node. If introspection is switched off, the service must refuse _service.
func TestServiceSDL(t *testing.T) {
	t.Parallel()
	s := start(t, "--federation")
	var printed bytes.Buffer
	if err := run(t.Context(), []string{"schema", "--federation"}, nil, &printed, io.Discard); err != nil {
		t.Fatal(err)
	}
	data := s.ask(t, `{ _service { sdl } __type(name: "_Entity") { possibleTypes { name } } }`, nil, anonymous)
	sdl := text(data, "_service.sdl")
	if sdl != printed.String() || strings.Contains(sdl, "_entities") {
		t.Errorf("_service returns another SDL than the command schema, or an SDL with _entities: %s", sdl)
	}
	if !strings.HasPrefix(sdl, `extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])`) || !strings.Contains(sdl, "type PageInfo @shareable {") {
		t.Errorf("the SDL has not the link to the federation specification, or PageInfo is not shareable: %s", sdl)
	}
	keyed := 0
	for _, name := range pluck(data, "__type.possibleTypes", "name") {
		if !strings.Contains(sdl, fmt.Sprintf("type %s implements Node @key(fields: \"id\") {", name)) {
			t.Errorf("%s has no key", name)
		}
		keyed++
	}
	if keyed != strings.Count(sdl, "implements Node") {
		t.Errorf("%d types are entities, want the %d types that implement Node", keyed, strings.Count(sdl, "implements Node"))
	}
	if err := run(t.Context(), []string{"schema", "--federation", "--semantic"}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--semantic adds") {
		t.Errorf("the command schema --federation --semantic gives the error %v, want one about the directive", err)
	}
	closed := start(t, "--federation", "--introspection=false")
	if _, errors := closed.query(t, `{ _service { sdl } }`, nil, anonymous); len(errors) != 1 || !strings.Contains(errors[0].Message, "introspection is switched off") {
		t.Errorf("without introspection, _service got the errors %v, want a refusal", errors)
	}
}

// TestEntitiesAreOneBatch checks that a query for 50 entities of one type takes one call to the venue.
func TestEntitiesAreOneBatch(t *testing.T) {
	t.Parallel()
	s := start(t, "--federation")
	markets, tokens := s.openMarkets(50), s.openTokens(50)
	var data any
	wantCalls(t, s.callsDuring(func() {
		data = s.ask(t, entitiesQuery, vars{"of": representations("Market", nodeIDs(model.KindMarket, markets)...)}, anonymous)
	}), calls{"market-details": {1, 50}})
	if got := pluck(data, "_entities", "marketId"); !slices.Equal(got, markets) {
		t.Errorf("got the entities %v, want %v", got, markets)
	}
	wantCalls(t, s.callsDuring(func() {
		data = s.ask(t, entitiesQuery, vars{"of": representations("Token", nodeIDs(model.KindToken, tokens)...)}, anonymous)
	}), calls{"prices": {1, 50}})
	if got := pluck(data, "_entities", "tokenId"); !slices.Equal(got, tokens) {
		t.Errorf("got the entities %v, want %v", got, tokens)
	}
}

// TestEntities checks valid and invalid representations. An invalid representation must give null and an error. The id of an
// unknown market must give null without an error.
func TestEntities(t *testing.T) {
	t.Parallel()
	s := start(t, "--federation")
	market, token := nodeIDs(model.KindMarket, s.openMarkets(1))[0], nodeIDs(model.KindToken, s.openTokens(1))[0]
	position := pluck(s.ask(t, `{ user(address: "`+addressOf50+`") { positions(first: 1) { nodes { id } } } }`, nil, keyOf50), "user.positions.nodes", "id")[0]
	inputs := []any{
		map[string]any{"__typename": "Market", "id": market, "more": map[string]any{"is": []any{"ignored"}}},
		"Market",
		map[string]any{"id": market},
		map[string]any{"__typename": "Balance", "id": market},
		map[string]any{"__typename": "Market"},
		map[string]any{"__typename": "Market", "id": 7},
		map[string]any{"__typename": "Market", "id": token},
		map[string]any{"__typename": "Market", "id": "nonsense"},
		map[string]any{"__typename": "Market", "id": nodeIDs(model.KindMarket, []string{"unknown"})[0]},
		map[string]any{"__typename": "User", "id": nodeIDs(model.KindUser, []string{addressOf50})[0]},
		map[string]any{"__typename": "Position", "id": position},
	}
	data, errors := s.query(t, entitiesQuery, vars{"of": inputs}, keyOf50)
	var types []string
	for _, entity := range list(data, "_entities") {
		name, _ := at(entity, "__typename").(string)
		types = append(types, name)
	}
	if want := []string{"Market", "", "", "", "", "", "", "", "", "User", "Position"}; !slices.Equal(types, want) {
		t.Errorf("the types of the entities are %q, want %q", types, want)
	}
	wantErrors(t, errors, "_entities.1 BAD_USER_INPUT", "_entities.2 BAD_USER_INPUT", "_entities.3 BAD_USER_INPUT", "_entities.4 BAD_USER_INPUT",
		"_entities.5 BAD_USER_INPUT", "_entities.6 BAD_USER_INPUT", "_entities.7 BAD_USER_INPUT")
	for i, says := range []string{
		"a representation is not an object", "a representation has no __typename", "is no entity of this subgraph; its entities are User, Position",
		"a representation of Market has no id, which is its key", "has no id",
		"the id in a representation of Market is not a global id of the type Market", "not a global id",
	} {
		if i < len(errors) && !strings.Contains(errors[i].Message, says) {
			t.Errorf("%q does not say %q", errors[i].Message, says)
		}
	}
	// Entities of accounts need credentials.
	_, errors = s.query(t, entitiesQuery, vars{"of": inputs[9:]}, anonymous)
	wantErrors(t, errors, "_entities.0.balance UNAUTHENTICATED", "_entities.1 UNAUTHENTICATED")
	// A literal has the same meaning as a variable.
	literal := fmt.Sprintf(`{ _entities(representations: [{__typename: "Market", id: %q}]) { ... on Market { id } } }`, market)
	if got := text(list(s.ask(t, literal, nil, anonymous), "_entities")[0], "id"); got != market {
		t.Errorf("the entity of a literal representation has the id %q, want %q", got, market)
	}
	large := `{ _entities(representations: [{__typename: "Market", id: 99999999999999999999999}]) { __typename } }`
	if _, errors = s.query(t, large, nil, anonymous); len(errors) != 1 || errors[0].Extensions.Code != "BAD_USER_INPUT" {
		t.Errorf("%s: got the errors %v, want BAD_USER_INPUT", large, errors)
	}
}

// TestEntitiesAreBounded checks that a query may have at most 500 representations, and that each representation adds to the cost of
// the query.
func TestEntitiesAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, "--federation")
	many := slices.Repeat(nodeIDs(model.KindToken, s.openTokens(1)), 501)
	var data any
	var errors []graphError
	wantCalls(t, s.callsDuring(func() {
		data, errors = s.query(t, `query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }`, vars{"of": representations("Token", many...)}, anonymous)
	}), calls{})
	wantErrors(t, errors, "_entities BAD_USER_INPUT")
	if entities := list(data, "_entities"); len(entities) != 501 || slices.ContainsFunc(entities, func(e any) bool { return e != nil }) {
		t.Errorf("the entities are %v, want 501 nulls", entities)
	}
	_, errors = s.query(t, `query ($of: [_Any!]!) { _entities(representations: $of) { ... on Token { orderbook { hash } } } }`, vars{"of": representations("Token", many[:100]...)}, anonymous)
	want := "the operation costs 104300 points; at most 100000 are accepted. _entities.orderbook costs most of all"
	if len(errors) != 1 || !strings.HasPrefix(errors[0].Message, want) {
		t.Errorf("got the errors %v, want %q", errors, want)
	}
}
