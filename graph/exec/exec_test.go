package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
)

// TestHardDocuments checks that gqlgen and package exec give the same responses to documents that are hard to execute correctly.
// All values must be in memory.
func TestHardDocuments(t *testing.T) {
	b := newExecutorPair(t, &universe{seed: 4})
	w0, w1 := string(wallets[0]), string(wallets[1])
	for name, test := range map[string]struct {
		document  string
		variables map[string]any
		// starts is the expected beginning of the data.
		starts string
	}{
		"no field remains":               {`{ serviceStatus @skip(if: true) { version } }`, nil, `{}`},
		"an empty object":                {`{ serviceStatus { version @include(if: false) } }`, nil, `{"serviceStatus":{}}`},
		"typenames":                      {`{ __typename t: __typename serviceStatus { __typename stream { x: __typename state } } }`, nil, `{"__typename":"Query","t":"Query","serviceStatus":{"__typename":"ServiceStatus"`},
		"order of first appearance":      {`{ token(tokenId: "token-1") { ...A tokenId b: id ...B } } fragment A on Token { b: id } fragment B on Token { id tokenId }`, nil, `{"token":{"b":"VG9rZW4KdG9rZW4tMQ","tokenId":"token-1","id":"VG9rZW4KdG9rZW4tMQ"}}`},
		"merged objects":                 {`{ token(tokenId: "token-1") { market { marketId } } x: __typename token(tokenId: "token-1") { market { slug marketId } id } }`, nil, `{"token":{"market":{"marketId":"market-0","slug":"slug-0"},"id":"VG9rZW4KdG9rZW4tMQ"},"x":"Query"}`},
		"merged through fragments":       {`{ ...A ...B } fragment A on Query { serviceStatus { demo } } fragment B on Query { serviceStatus { ...C } } fragment C on ServiceStatus { demo upstreamReachable }`, nil, `{"serviceStatus":{"demo":false,"upstreamReachable":false}}`},
		"order after a skipped fragment": {`query ($on: Boolean!) { token(tokenId: "token-1") { ... @include(if: $on) { tokenId } id tokenId } }`, map[string]any{"on": false}, `{"token":{"id"`},
		"order after a fragment":         {`query ($on: Boolean!) { token(tokenId: "token-1") { ... @include(if: $on) { tokenId } id tokenId } }`, map[string]any{"on": true}, `{"token":{"tokenId"`},
		"a spread that is skipped":       {`query ($on: Boolean!) { token(tokenId: "token-1") { ...A @skip(if: $on) id ...A } } fragment A on Token { tokenId }`, map[string]any{"on": true}, `{"token":{"id"`},
		"skip and include":               {`query ($a: Boolean!, $b: Boolean!) { x: __typename @skip(if: $a) @include(if: $b) y: __typename @skip(if: $b) @include(if: $a) }`, map[string]any{"a": true, "b": false}, `{"y":"Query"}`},
		"a default that skips":           {`query ($a: Boolean! = true) { x: __typename @skip(if: $a) y: __typename }`, nil, `{"y":"Query"}`},
		"type conditions":                {`{ nodes(ids: ["` + model.EncodeID("Token", "token-3") + `", "` + model.EncodeID("User", w0) + `", "` + model.EncodeID("Market", "market-99") + `"]) { __typename id ... on Node { again: id } ... on Token { tokenId ... on Node { third: id } } ... on User { address } } }`, nil, ``},
		"one node":                       {`query ($id: ID!) { node(id: $id) { ... on Event { eventId markets(first: 2) { totalCount nodes { marketId } } } __typename } }`, map[string]any{"id": model.EncodeID("Event", "event-1")}, `{"node":{`},
		"aliases of one field":           {`{ a: token(tokenId: "token-1") { tokenId } b: token(tokenId: "token-2") { tokenId } }`, nil, `{"a":{"tokenId":"token-1"},"b":{"tokenId":"token-2"}}`},
		"absent values":                  {`{ market(marketId: "market-99") { id } event(slug: "none") { id } tokenPrices(tokenIds: ["unknown", "token-1"]) { tokenId } }`, nil, `{"market":null,"event":null,"tokenPrices":[null,{"tokenId":"token-1"}]}`},
		"empty lists":                    {`{ tokens(tokenIds: []) { id } nodes(ids: []) { id } markets(marketIds: []) { tokens { id } } }`, nil, `{"tokens":[],"nodes":[],"markets":[]}`},
		"a list from one value":          {`query ($id: [String!]!) { tokens(tokenIds: $id) { tokenId } x: tokens(tokenIds: "token-2") { tokenId } }`, map[string]any{"id": "token-1"}, `{"tokens":[{"tokenId":"token-1"}],"x":[{"tokenId":"token-2"}]}`},
		"numbers as strings":             {`query ($id: [String!]!, $one: ID!) { tokens(tokenIds: $id) { tokenId } node(id: $one) { id } }`, map[string]any{"id": []any{"1", "2"}, "one": model.EncodeID("Token", "1")}, `{"tokens":[{"tokenId":"1"},{"tokenId":"2"}],`},
		"texts":                          {`{ markets(marketIds: ["market-0", "market-1", "market-2", "market-3", "market-4", "market-5"]) { question description groupItemTitle image category tags statusRaw status slug event { title slug } } }`, nil, `{"markets":[{"question":`},
		"numbers":                        {`{ markets(marketIds: ["market-0", "market-1", "market-2", "market-3", "market-4", "market-5"]) { volume volume24h liquidity tickSize minOrderSize startsAt endsAt updatedAt acceptingOrders } }`, nil, `{"markets":[{"volume":`},
		"lists in lists":                 {`{ event(eventId: "event-0") { markets { edges { cursor node { tokens { outcome market { tokens { tokenId } } } } } pageInfo { hasNextPage endCursor startCursor } totalCount } } }`, nil, `{"event":{"markets":{"edges":[`},
		"nodes beside edges":             {`query ($a: Address!) { user(address: $a) { positions(first: 3) { nodes { id } edges { node { id } } } } }`, map[string]any{"a": w1}, `{"user":{"positions":{"nodes":[`},
		"edges in a fragment":            {`query ($a: Address!) { user(address: $a) { positions(first: 3) { ...P } } } fragment P on PositionConnection { e: edges { cursor } }`, map[string]any{"a": w1}, `{"user":{"positions":{"e":[{"cursor":`},
		"arguments from variables":       {`query ($d: Int, $s: OrderSide!, $z: Decimal) { tokens(tokenIds: ["token-1", "token-2"]) { orderbook(depth: $d) { bids { price size } } fillEstimate(side: $s, size: $z) { cost complete } } }`, map[string]any{"d": 3, "s": "BUY", "z": 2.5}, `{"tokens":[{"orderbook":`},
		"an omitted variable":            {`query ($d: Int) { token(tokenId: "token-1") { orderbook(depth: $d) { asks { price } } } }`, nil, `{"token":{"orderbook":`},
		"a null variable":                {`query ($d: Int) { token(tokenId: "token-1") { orderbook(depth: $d) { asks { price } } } }`, map[string]any{"d": nil}, `{"token":{"orderbook":`},
		"an input object":                {`query ($tag: String, $f: MarketSearchFilter) { a: searchMarkets(query: "x", filter: { status: [OPEN], tag: $tag }) { nodes { id } } b: searchMarkets(filter: $f, first: 3) { edges { cursor } } }`, map[string]any{"tag": "t", "f": map[string]any{"status": []string{"OPEN", "CLOSED"}, "endsBefore": "2026-03-14T10:00:00Z"}}, `{"a":{"nodes":[`},
		"valuations by all bases":        {`query ($a: Address!) { user(address: $a) { positions { nodes { id valuation { id value unrealizedPnl unrealizedPnlPercent basis price freshness { stale source } } s: valuation(basis: SETTLEMENT) { value } v: valuation(basis: VENUE) { value } l: valuation(basis: LAST) { value } m: valuation(basis: MIDPOINT) { value } b: valuation(basis: BEST_BID) { value } k: valuation(basis: BEST_ASK) { value } p: valuation(basis: POSITION) { value } redeemable } } portfolio { id positionsValue totalValue availableCash costBasis } } }`, map[string]any{"a": w1}, `{"user":{"positions":{"nodes":[`},
		"the viewer":                     {`{ viewer { address balance { cashBalance } orders { nodes { id } } trades { nodes { id } } history { nodes { id } } } }`, nil, `{"viewer":{"address":"` + w0 + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			o := b.mustParse(test.document, test.variables)
			ok, resp := o.compare(test.document)
			if !ok || len(resp.Errors) > 0 {
				t.Errorf("the document was not answered from memory, or has errors: %s %v", resp.Data, resp.Errors)
			}
			if !strings.HasPrefix(string(resp.Data), test.starts) {
				t.Errorf("the data is %s, want it to begin with %s", resp.Data, test.starts)
			}
		})
	}
}

// TestErrors checks that gqlgen and package exec give the same responses if a field fails.
func TestErrors(t *testing.T) {
	w0 := string(wallets[0])
	for name, test := range map[string]struct {
		u         *universe
		document  string
		variables map[string]any
		// wants contains the beginnings of the expected errors, sorted. If wants is nil, at least one error is expected.
		wants []string
	}{
		"a literal that is bad":      {nil, `{ token(tokenId: "token-1") { orderbook(depth: 0) { hash } } }`, nil, []string{"token.orderbook [{1 31}] depth is 0"}},
		"a scalar that is bad":       {nil, `{ user(address: "0x1") { id } }`, nil, []string{"user [{1 3}] address: "}},
		"a variable that is bad":     {nil, `query ($a: Address!) { user(address: $a) { id } }`, map[string]any{"a": "0x1"}, []string{"user [{1 24}] address: "}},
		"bad ids and a bad cursor":   {nil, `query ($a: Address!) { a: nodes(ids: ["?", "VG9rZW4KMQ"]) { id } u: user(address: $a) { b: orders(after: "?") { totalCount } } }`, map[string]any{"a": w0}, []string{"a[0]", "u.b"}},
		"one bad id of many":         {nil, `{ tokens(tokenIds: ["token-1", "a,b"]) { id } }`, nil, []string{"tokens[1] [{1 3}]"}},
		"no id and no slug":          {nil, `{ market { id } }`, nil, []string{"market [{1 3}] give exactly one"}},
		"rows that are left out":     {&universe{seed: 1, damaged: 100}, `{ searchMarkets { nodes { id } } }`, nil, []string{"searchMarkets [{1 3}] row 3"}},
		"prices that fail":           {&universe{seed: 1, failures: 100}, `{ t: tokens(tokenIds: ["token-1", "token-2"]) { price { price } } }`, nil, []string{"t[0].price [{1 49}]", "t[1].price [{1 49}]"}},
		"a page that fails":          {&universe{seed: 1, failures: 100}, `{ searchMarkets { nodes { id } } }`, nil, []string{"searchMarkets [{1 3}]"}},
		"a value that never arrives": {&universe{seed: 1, misses: 100, hangs: 100}, `{ token(tokenId: "token-1") { price { price } } }`, nil, []string{"token.price [{1 31}] the request took too long"}},
		"a panic of a resolver":      {nil, `{ serviceStatus { version } }`, map[string]any{"panic": true}, []string{"serviceStatus [{1 3}] internal error"}},
		"panics in lists":            {&universe{seed: 1, panics: 100}, `{ markets(marketIds: ["market-1", "market-2"]) { tokens { p: price { price } tokenId } } }`, nil, []string{"markets[0].tokens[0].p", "markets[0].tokens[1].p", "markets[1].tokens[0].p", "markets[1].tokens[1].p"}},
		"a bad nested argument":      {nil, `{ viewer { positions { nodes { token { candles(interval: DAY, from: "2026-02-31") { open } } } } } }`, nil, nil},
		"a period that ends first":   {nil, `{ user(address: "` + w0 + `") { trades(from: "2026-03-10T00:00:00Z", to: "2026-03-01T00:00:00Z") { nodes { id } } } }`, nil, []string{"user.trades"}},
		"an invalid cursor":          {nil, `{ viewer { orders(after: "AAAA") { nodes { id } } } }`, nil, []string{"viewer.orders"}},
		"a field in a fragment":      {nil, "{ token(tokenId: \"token-1\") { ...F } }\nfragment F on Token {\n  o: orderbook(depth: 0) { hash } }", nil, []string{"token.o [{3 3}]"}},
		"merged fields":              {nil, "{ token(tokenId: \"token-1\") { ...F\n orderbook(depth: 0) { bids { price } } } }\nfragment F on Token {\n  orderbook(depth: 0) { hash } }", nil, []string{"token.orderbook [{4 3}]"}},
		"each element of a list":     {nil, `{ nodes(ids: ["` + model.EncodeID("Token", "token-3") + `", "` + model.EncodeID("Token", "token-4") + `"]) { ... on Token { orderbook(depth: 0) { hash } } } }`, nil, []string{"nodes[0].orderbook", "nodes[1].orderbook"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := test.u
				if u == nil {
					u = &universe{seed: 3}
				}
				b := newExecutorPair(t, u)
				b.panics = test.variables["panic"] == true
				_, resp := b.mustParse(test.document, test.variables).compare(test.document)
				got := describeErrors(resp.Errors)
				if test.wants == nil && len(got) > 0 {
					return
				}
				if len(got) != len(test.wants) {
					t.Fatalf("the errors are %q, want %d errors", got, len(test.wants))
				}
				for i, want := range test.wants {
					if !strings.HasPrefix(got[i], want) {
						t.Errorf("error %d is %q, want it to begin with %q", i, got[i], want)
					}
				}
			})
		})
	}
}

// TestOperationsThatCannotRun checks that Execute returns no data and one error for an operation that cannot run.
func TestOperationsThatCannotRun(t *testing.T) {
	wide := ""
	for i := range 10_001 {
		wide += fmt.Sprintf("a%d: __typename ", i)
	}
	b := newExecutorPair(t, &universe{})
	for _, test := range []struct {
		document  string
		variables map[string]any
		want      string
	}{
		{`query ($a: Boolean = true) { x: __typename @skip(if: $a) }`, map[string]any{"a": nil}, " [] variable $a is null; @skip and @include need true or false map[code:BAD_USER_INPUT]"},
		{`{ ` + wide + ` }`, nil, " [] the operation selects more than 10000 fields map[code:BAD_USER_INPUT]"},
	} {
		o := b.mustParse(test.document, test.variables)
		data, errs := o.executable.Execute(b.ctx, o.variables, []byte("before"), nil)
		if got := describeErrors(o.presentAll(errs)); data != nil || len(got) != 1 || got[0] != test.want {
			t.Errorf("the document %.100s returned the data %.100q and the errors %q, want only the error %q", test.document, data, got, test.want)
		}
	}
}

// TestIntrospection checks that gqlgen and package exec give the same response to a query of the whole introspection schema, except
// that package exec gives null where section 4.2.2 of the specification says null.
func TestIntrospection(t *testing.T) {
	b := newExecutorPair(t, &universe{})
	const document = `query { __schema { description queryType { name } mutationType { name } subscriptionType { name } types { ...T } directives { name description isRepeatable locations args(includeDeprecated: true) { ...I } } }
		__type(name: "Token") { ...T } none: __type(name: "Nope") { name } }
	fragment T on __Type { kind name description specifiedByURL isOneOf fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...I } type { ...R } isDeprecated deprecationReason }
		inputFields(includeDeprecated: true) { ...I } interfaces { ...R } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...R } }
	fragment I on __InputValue { name description type { ...R } defaultValue isDeprecated deprecationReason }
	fragment R on __Type { __typename kind name ofType { kind name ofType { kind name ofType { kind name } } } }`
	o := b.mustParse(document, nil)
	data, errs, ok := o.executeInOnePass()
	if !ok || len(errs) > 0 || len(data) < 100_000 {
		t.Errorf("the response has %d bytes and the errors %v, want at least 100000 bytes from memory", len(data), errs)
	}
	var got, want any
	for text, into := range map[string]*any{string(data): &got, string(o.executeWithGqlgen().Data): &want} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	specify(want, seen)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("introspection gives %s, want %s", data, asText(want))
	}
	if len(seen) != 7 { // the schema has no union
		t.Errorf("the response has types of the kinds %v, want 7 kinds", seen)
	}
}

func asText(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// specify sets the fields of all descriptions of types in v to null if section 4.2.2 of the specification says null. It adds the
// kinds of these types to seen.
func specify(v any, seen map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			specify(element, seen)
		}
	case map[string]any:
		for _, member := range v {
			specify(member, seen)
		}
		kind, ok := v["kind"].(string)
		if !ok {
			return
		}
		seen[kind] = true
		valued := map[string]string{
			"fields": "OBJECT INTERFACE", "interfaces": "OBJECT INTERFACE", "possibleTypes": "INTERFACE UNION", "enumValues": "ENUM",
			"inputFields": "INPUT_OBJECT", "isOneOf": "INPUT_OBJECT",
		}
		for field, kinds := range valued {
			if _, selected := v[field]; selected && !slices.Contains(strings.Fields(kinds), kind) {
				v[field] = nil
			}
		}
	}
}

// TestConditions checks the responses of an operation with 70 conditions, for 32 combinations of their values. The operation must
// keep only 16 compiled variants.
func TestConditions(t *testing.T) {
	const conditions = 70
	var declared, fields string
	for i := range conditions {
		declared += fmt.Sprintf("$v%d: Boolean! ", i)
		fields += fmt.Sprintf("f%d: __typename @skip(if: $v%d) ", i, i)
	}
	b := newExecutorPair(t, &universe{})
	doc, errs := gqlparser.LoadQueryWithRules(b.schema, "query ("+declared+") { "+fields+"}", nil)
	if errs != nil {
		t.Fatal(errs)
	}
	bytes, kept := 0, 0
	op := b.compiler.Operation(doc, doc.Operations[0], func(n int) { bytes, kept = bytes+n, kept+1 })
	for range 2 {
		for n := range 32 {
			variables, want := map[string]any{}, ""
			for i := range conditions {
				skipped := (n*2654435761>>(i%32))&1 != 0 || i%32 == n
				if variables[fmt.Sprint("v", i)] = skipped; !skipped {
					want += fmt.Sprintf(`,"f%d":"Query"`, i)
				}
			}
			data, errs := op.Execute(b.ctx, variables, nil, nil)
			if want = "{" + strings.TrimPrefix(want, ",") + "}"; len(errs) > 0 || string(data) != want {
				t.Fatalf("combination %d gives\n%s with the errors %v, want\n%s", n, data, errs, want)
			}
		}
	}
	if kept != 16 || bytes < 16*100 || bytes > 16*conditions*1000 {
		t.Errorf("the operation stores %d variants of %d bytes, want 16 variants", kept, bytes)
	}
}

// TestConcurrentExecutions checks that many goroutines can execute one operation with different variables.
func TestConcurrentExecutions(t *testing.T) {
	b := newExecutorPair(t, &universe{seed: 4})
	const document = `query ($ids: [String!]!, $on: Boolean!) { tokens(tokenIds: $ids) { tokenId price { price } ... @include(if: $on) { id market { question } } } }`
	o := b.mustParse(document, map[string]any{"ids": []string{}, "on": true})
	var g sync.WaitGroup
	for n := range 8 {
		g.Go(func() {
			mine := *o
			mine.variables = map[string]any{"ids": []any{tokenID(n), tokenID(n + 1)}, "on": n%2 == 0}
			for range 50 {
				if ok, _ := mine.compare(document); !ok {
					t.Error("the document was not answered from memory")
				}
			}
		})
	}
	g.Wait()
}

// TestMake checks that Make returns distinct zero values. During an execution of package exec, Make must allocate the values in
// blocks.
func TestMake(t *testing.T) {
	seen := map[*int]bool{}
	check := func(ctx context.Context) {
		for i := range 300 {
			p := exec.Make[int](ctx)
			if *p != 0 || seen[p] {
				t.Fatalf("value %d is %d, want a new value of 0", i, *p)
			}
			*p, seen[p] = i+1, true
			if s := exec.Make[string](ctx); *s != "" {
				t.Fatalf("Make returned the string %q, want an empty string", *s)
			}
		}
	}
	check(context.Background())
	check(&exec.Execution{Context: context.Background()})
	for _, ctx := range []context.Context{context.Background(), &exec.Execution{Context: context.Background()}} {
		if list := exec.MakeList[int](ctx, 0); list == nil || len(list) != 0 {
			t.Errorf("MakeList(0) = %#v, want an empty list that is not nil", list)
		}
	}
	x := &exec.Execution{Context: context.Background()}
	if n := testing.AllocsPerRun(10, func() {
		for range 640 {
			exec.Make[[4]int](x)
		}
	}); n > 11 {
		t.Errorf("640 values take %v allocations, want at most 11", n)
	}
}

// TestExecutionsAreReused checks that a reused Execution has no data of earlier executions, whether they succeeded, failed or
// panicked.
func TestExecutionsAreReused(t *testing.T) {
	type key struct{}
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { a(n: Int!): Int }"})
	end, runs := func(*exec.Execution, *exec.Field) {}, 0
	c := exec.NewCompiler(schema, map[string]exec.Type{"Query": {Fields: map[string]exec.FieldOf{
		"a": {Number: 1, Arguments: func(_ context.Context, raw map[string]any) (any, error) { return raw["n"], nil }},
	}}}, func(x *exec.Execution, s *exec.Selection) bool {
		runs++
		if got := x.Arguments(&s.Fields[0]); got != runs {
			t.Errorf("execution %d has the argument %v, want %[1]d", runs, got)
		}
		if x.Selects("a") || x.Value(key{}) != runs || len(x.Buf) != 0 {
			t.Errorf("execution %d begins with data of an earlier execution", runs)
		}
		for range 2 {
			list, one, text := exec.MakeList[int](x, runs%7), exec.Make[int](x), exec.Make[string](x)
			if slices.ContainsFunc(list, func(n int) bool { return n != 0 }) || *one != 0 || *text != "" {
				t.Errorf("in execution %d, the new values are %v, %d and %q, want zero values", runs, list, *one, *text)
			}
			*one, *text = runs, "left"
			for i := range list {
				list[i] = runs
			}
		}
		x.Enter(&exec.Field{Sub: s})
		end(x, &s.Fields[0])
		return true
	}, nil)
	doc := gqlparser.MustLoadQueryWithRules(schema, `query ($n: Int!) { a(n: $n) }`, nil)
	o := c.Operation(doc, doc.Operations[0], func(int) {})
	ends := []func(*exec.Execution, *exec.Field){
		func(*exec.Execution, *exec.Field) {},
		func(x *exec.Execution, f *exec.Field) { x.Error(f, fmt.Errorf("end %d", runs)) },
		func(*exec.Execution, *exec.Field) { panic("end") },
	}
	execute := func(n int) (errs []exec.Error, panicked any) {
		defer func() { panicked = recover() }()
		_, errs = o.Execute(context.WithValue(t.Context(), key{}, n), map[string]any{"n": n}, nil, nil)
		return errs, nil
	}
	for n := 1; n <= 90; n++ {
		end = ends[n%3]
		errs, panicked := execute(n)
		if len(errs) != n%3%2 || (panicked != nil) != (n%3 == 2) || len(errs) > 0 && errs[0].Error() != fmt.Sprintf("a: end %d", n) {
			t.Errorf("execution %d returned the errors %v and panicked with %v", n, errs, panicked)
		}
	}
	if runs != 90 {
		t.Errorf("%d executions ran, want 90", runs)
	}
}

// TestExecuteUsesTheBuffer checks that Execute writes into the given buffer if the response fits. Otherwise Execute must return a
// larger buffer that has room to spare.
func TestExecuteUsesTheBuffer(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { a: Int }"})
	size := 1000
	c := exec.NewCompiler(schema, map[string]exec.Type{"Query": {Fields: map[string]exec.FieldOf{"a": {Number: 1}}}}, func(x *exec.Execution, _ *exec.Selection) bool {
		for range size {
			x.Buf = append(x.Buf, 'a')
		}
		return true
	}, nil)
	doc := gqlparser.MustLoadQueryWithRules(schema, `{ a }`, nil)
	o := c.Operation(doc, doc.Operations[0], func(int) {})
	execute := func(buf []byte) []byte {
		data, errs := o.Execute(t.Context(), nil, buf, nil)
		if len(errs) > 0 || string(data) != string(buf)+strings.Repeat("a", size) {
			t.Fatalf("Execute returned the errors %v and the data %s", errs, data)
		}
		return data
	}
	execute(nil)
	buf := make([]byte, 3, 3+size)
	if data := execute(buf); &data[0] != &buf[0] {
		t.Error("Execute did not use a buffer that is large enough")
	}
	if data := execute(buf[: 3 : 3+size-1]); &data[0] == &buf[0] || cap(data) < 3+size+size/8 {
		t.Errorf("for a buffer that is too small, Execute returned a buffer of %d bytes, want a new buffer of at least %d", cap(data), 3+size+size/8)
	}
	if n := testing.AllocsPerRun(10, func() { execute(nil) }); n > 4 {
		t.Errorf("Execute without a buffer makes %v allocations, want at most 4", n)
	}
}

func TestExecutionIsAContext(t *testing.T) {
	type key struct{}
	x := &exec.Execution{Context: context.WithValue(context.Background(), key{}, 1)}
	if x.Value(key{}) != 1 || exec.From(x) != x || exec.From(context.Background()) != nil || x.Selects("id") {
		t.Errorf("the execution has the value %v, and From returned %v", x.Value(key{}), exec.From(x))
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	for c := range 256 {
		f.Add("a" + string([]byte{byte(c)}) + "b")
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		graphql.MarshalString(s).MarshalGQL(&want)
		if got := exec.AppendString([]byte("x"), s); string(got) != "x"+want.String() {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, &want)
		}
	})
}

// TestArgumentsOneByOne checks that arguments are decoded with FieldOf.Set. FieldOf.Arguments must decode all arguments in three
// cases: Set returns false, an argument is null, or an omitted argument has a default.
func TestArgumentsOneByOne(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { a(n: Int, m: Int, d: Int = 7): Int }`})
	type arguments struct{ n, m, d any }
	var got any
	var decodedTogether bool
	c := exec.NewCompiler(schema, map[string]exec.Type{"Query": {Fields: map[string]exec.FieldOf{"a": {
		Number: 1,
		Arguments: func(_ context.Context, raw map[string]any) (any, error) {
			decodedTogether = true
			return &arguments{raw["n"], raw["m"], raw["d"]}, nil
		},
		New: func(x *exec.Execution) any { return exec.Make[arguments](x) },
		Set: func(to any, name string, value any) bool {
			switch a := to.(*arguments); name {
			case "n":
				a.n = value
			case "d":
				a.d = value
			default:
				return false
			}
			return true
		},
	}}}}, func(x *exec.Execution, s *exec.Selection) bool {
		got = *x.Arguments(&s.Fields[0]).(*arguments)
		x.Buf = append(x.Buf, '1')
		return true
	}, nil)
	type variables = map[string]any
	for _, test := range []struct {
		document        string
		variables       variables
		want            arguments
		decodedTogether bool
	}{
		{`query ($n: Int) { a(n: $n, d: 1) }`, variables{"n": 2}, arguments{2, nil, int64(1)}, false},
		{`query ($d: Int) { a(d: $d) }`, variables{"d": 2}, arguments{nil, nil, 2}, false},
		{`query ($n: Int) { a(n: $n, d: 1) }`, nil, arguments{nil, nil, int64(1)}, false},
		{`query ($n: Int) { a(n: $n) }`, variables{"n": 2}, arguments{2, nil, int64(7)}, true},
		{`query ($d: Int) { a(d: $d) }`, nil, arguments{nil, nil, int64(7)}, true},
		{`query ($n: Int) { a(n: $n, d: 1) }`, variables{"n": nil}, arguments{nil, nil, int64(1)}, true},
		{`query ($n: Int) { a(n: $n, d: null) }`, variables{"n": 2}, arguments{2, nil, nil}, true},
		{`query ($n: Int) { a(n: $n, m: 3, d: 1) }`, variables{"n": 2}, arguments{2, int64(3), int64(1)}, true},
	} {
		doc := gqlparser.MustLoadQueryWithRules(schema, test.document, nil)
		got, decodedTogether = nil, false
		if _, errs := c.Operation(doc, doc.Operations[0], func(int) {}).Execute(t.Context(), test.variables, nil, nil); len(errs) > 0 || got != test.want || decodedTogether != test.decodedTogether {
			t.Errorf("%s with the variables %v has the arguments %v, decoded together: %t; want %v, %t", test.document, test.variables, got, decodedTogether, test.want, test.decodedTogether)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, test := range []struct {
		value any
		want  []string
		ok    bool
	}{
		{[]any{"a", ""}, []string{"a", ""}, true}, {[]any{}, []string{}, true}, {[]string{"a"}, []string{"a"}, true},
		{[]any{"a", 1}, nil, false}, {[]any{nil}, nil, false}, {"a", nil, false}, {nil, nil, false},
	} {
		if got, ok := exec.Strings(test.value); ok != test.ok || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("Strings(%v) = %q, %v, want %q, %v", test.value, got, ok, test.want, test.ok)
		}
	}
}
