package compiled_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph/compiled"
	"oddsgraph/graph/model"
)

// TestHardDocuments compares documents that are easy to get wrong. All of them must be answered from memory.
func TestHardDocuments(t *testing.T) {
	b := newBoth(t, &universe{seed: 4})
	w0, w1 := string(wallets[0]), string(wallets[1])
	for name, test := range map[string]struct {
		document  string
		variables map[string]any
		// starts is how the data begin, where the comparison alone does not show what is meant.
		starts string
	}{
		"nothing left":               {`{ serviceStatus @skip(if: true) { version } }`, nil, `{}`},
		"an empty object":            {`{ serviceStatus { version @include(if: false) } }`, nil, `{"serviceStatus":{}}`},
		"typenames":                  {`{ __typename t: __typename serviceStatus { __typename stream { x: __typename state } } }`, nil, `{"__typename":"Query","t":"Query","serviceStatus":{"__typename":"ServiceStatus"`},
		"order of first appearance":  {`{ token(tokenId: "token-1") { ...A tokenId b: id ...B } } fragment A on Token { b: id } fragment B on Token { id tokenId }`, nil, `{"token":{"b":"VG9rZW4KdG9rZW4tMQ","tokenId":"token-1","id":"VG9rZW4KdG9rZW4tMQ"}}`},
		"merged objects":             {`{ token(tokenId: "token-1") { market { marketId } } x: __typename token(tokenId: "token-1") { market { slug marketId } id } }`, nil, `{"token":{"market":{"marketId":"market-0","slug":"slug-0"},"id":"VG9rZW4KdG9rZW4tMQ"},"x":"Query"}`},
		"merged through fragments":   {`{ ...A ...B } fragment A on Query { serviceStatus { demo } } fragment B on Query { serviceStatus { ...C } } fragment C on ServiceStatus { demo upstreamReachable }`, nil, `{"serviceStatus":{"demo":false,"upstreamReachable":false}}`},
		"a fragment that comes late": {`query ($on: Boolean!) { token(tokenId: "token-1") { ... @include(if: $on) { tokenId } id tokenId } }`, map[string]any{"on": false}, `{"token":{"id"`},
		"and early":                  {`query ($on: Boolean!) { token(tokenId: "token-1") { ... @include(if: $on) { tokenId } id tokenId } }`, map[string]any{"on": true}, `{"token":{"tokenId"`},
		"a spread that is skipped":   {`query ($on: Boolean!) { token(tokenId: "token-1") { ...A @skip(if: $on) id ...A } } fragment A on Token { tokenId }`, map[string]any{"on": true}, `{"token":{"id"`},
		"skip and include":           {`query ($a: Boolean!, $b: Boolean!) { x: __typename @skip(if: $a) @include(if: $b) y: __typename @skip(if: $b) @include(if: $a) }`, map[string]any{"a": true, "b": false}, `{"y":"Query"}`},
		"a default that skips":       {`query ($a: Boolean! = true) { x: __typename @skip(if: $a) y: __typename }`, nil, `{"y":"Query"}`},
		"conditions on types":        {`{ nodes(ids: ["` + model.EncodeID("Token", "token-3") + `", "` + model.EncodeID("User", w0) + `", "` + model.EncodeID("Market", "market-99") + `"]) { __typename id ... on Node { again: id } ... on Token { tokenId ... on Node { third: id } } ... on User { address } } }`, nil, ``},
		"one node":                   {`query ($id: ID!) { node(id: $id) { ... on Event { eventId markets(first: 2) { totalCount nodes { marketId } } } __typename } }`, map[string]any{"id": model.EncodeID("Event", "event-1")}, `{"node":{`},
		"aliases of one field":       {`{ a: token(tokenId: "token-1") { tokenId } b: token(tokenId: "token-2") { tokenId } }`, nil, `{"a":{"tokenId":"token-1"},"b":{"tokenId":"token-2"}}`},
		"absent things":              {`{ market(marketId: "market-99") { id } event(slug: "none") { id } tokenPrices(tokenIds: ["unknown", "token-1"]) { tokenId } }`, nil, `{"market":null,"event":null,"tokenPrices":[null,{"tokenId":"token-1"}]}`},
		"empty lists":                {`{ tokens(tokenIds: []) { id } nodes(ids: []) { id } markets(marketIds: []) { tokens { id } } }`, nil, `{"tokens":[],"nodes":[],"markets":[]}`},
		"a list from one":            {`query ($id: [String!]!) { tokens(tokenIds: $id) { tokenId } x: tokens(tokenIds: "token-2") { tokenId } }`, map[string]any{"id": "token-1"}, `{"tokens":[{"tokenId":"token-1"}],"x":[{"tokenId":"token-2"}]}`},
		"numbers for texts":          {`query ($id: [String!]!, $one: ID!) { tokens(tokenIds: $id) { tokenId } node(id: $one) { id } }`, map[string]any{"id": []any{"1", "2"}, "one": model.EncodeID("Token", "1")}, `{"tokens":[{"tokenId":"1"},{"tokenId":"2"}],`},
		"texts":                      {`{ markets(marketIds: ["market-0", "market-1", "market-2", "market-3", "market-4", "market-5"]) { question description groupItemTitle image category tags statusRaw status slug event { title slug } } }`, nil, `{"markets":[{"question":`},
		"numbers":                    {`{ markets(marketIds: ["market-0", "market-1", "market-2", "market-3", "market-4", "market-5"]) { volume volume24h liquidity tickSize minOrderSize startsAt endsAt updatedAt acceptingOrders } }`, nil, `{"markets":[{"volume":`},
		"lists in lists":             {`{ event(eventId: "event-0") { markets { edges { cursor node { tokens { outcome market { tokens { tokenId } } } } } pageInfo { hasNextPage endCursor startCursor } totalCount } } }`, nil, `{"event":{"markets":{"edges":[`},
		"nodes beside edges":         {`query ($a: Address!) { user(address: $a) { positions(first: 3) { nodes { id } edges { node { id } } } } }`, map[string]any{"a": w1}, `{"user":{"positions":{"nodes":[`},
		"edges in a fragment":        {`query ($a: Address!) { user(address: $a) { positions(first: 3) { ...P } } } fragment P on PositionConnection { e: edges { cursor } }`, map[string]any{"a": w1}, `{"user":{"positions":{"e":[{"cursor":`},
		"arguments from variables":   {`query ($d: Int, $s: OrderSide!, $z: Decimal) { tokens(tokenIds: ["token-1", "token-2"]) { orderbook(depth: $d) { bids { price size } } fillEstimate(side: $s, size: $z) { cost complete } } }`, map[string]any{"d": 3, "s": "BUY", "z": 2.5}, `{"tokens":[{"orderbook":`},
		"a variable that is left":    {`query ($d: Int) { token(tokenId: "token-1") { orderbook(depth: $d) { asks { price } } } }`, nil, `{"token":{"orderbook":`},
		"a variable of null":         {`query ($d: Int) { token(tokenId: "token-1") { orderbook(depth: $d) { asks { price } } } }`, map[string]any{"d": nil}, `{"token":{"orderbook":`},
		"an input object":            {`query ($tag: String, $f: MarketSearchFilter) { a: searchMarkets(query: "x", filter: { status: [OPEN], tag: $tag }) { nodes { id } } b: searchMarkets(filter: $f, first: 3) { edges { cursor } } }`, map[string]any{"tag": "t", "f": map[string]any{"status": []string{"OPEN", "CLOSED"}, "endsBefore": "2026-03-14T10:00:00Z"}}, `{"a":{"nodes":[`},
		"valuations by all bases":    {`query ($a: Address!) { user(address: $a) { positions { nodes { id valuation { id value unrealizedPnl unrealizedPnlPercent basis price freshness { stale source } } s: valuation(basis: SETTLEMENT) { value } v: valuation(basis: VENUE) { value } l: valuation(basis: LAST) { value } m: valuation(basis: MIDPOINT) { value } b: valuation(basis: BEST_BID) { value } k: valuation(basis: BEST_ASK) { value } p: valuation(basis: POSITION) { value } redeemable } } portfolio { id positionsValue totalValue availableCash costBasis } } }`, map[string]any{"a": w1}, `{"user":{"positions":{"nodes":[`},
		"who asks":                   {`{ viewer { address balance { cashBalance } orders { nodes { id } } trades { nodes { id } } history { nodes { id } } } }`, nil, `{"viewer":{"address":"` + w0 + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			o := b.mustParse(test.document, test.variables)
			ok, resp := o.compare(test.document)
			if !ok {
				t.Errorf("it is answered by gqlgen alone: %s %v", resp.Data, resp.Errors)
			}
			if !strings.HasPrefix(string(resp.Data), test.starts) {
				t.Errorf("%s does not begin with %s", resp.Data, test.starts)
			}
		})
	}
}

// TestLeftToGqlgen has no result: it is for gqlgen to answer, mostly with errors.
func TestLeftToGqlgen(t *testing.T) {
	many := make([]string, 9)
	for i := range many {
		many[i] = fmt.Sprintf("$v%d: Boolean! = true", i)
	}
	wide := strings.Repeat("x: __typename ", 1)
	for i := range 10_001 {
		wide += fmt.Sprintf("a%d: __typename ", i)
	}
	for name, test := range map[string]struct {
		u         *universe
		document  string
		variables map[string]any
	}{
		"introspection":            {nil, `{ __schema { queryType { name } } }`, nil},
		"a type":                   {nil, `{ __type(name: "Token") { name } }`, nil},
		"a subscription":           {nil, `subscription { streamStatusChanged { state } }`, nil},
		"a literal that is bad":    {nil, `{ token(tokenId: "token-1") { orderbook(depth: 0) { hash } } }`, nil},
		"a scalar that is bad":     {nil, `{ user(address: "0x1") { id } }`, nil},
		"a variable that is bad":   {nil, `query ($a: Address!) { user(address: $a) { id } }`, map[string]any{"a": "0x1"}},
		"one bad id of many":       {nil, `{ tokens(tokenIds: ["token-1", "a,b"]) { id } }`, nil},
		"one bad node of many":     {nil, `{ nodes(ids: ["?", "VG9rZW4KMQ"]) { id } }`, nil},
		"two bad arguments":        {nil, `{ market { id } }`, nil},
		"a null for a condition":   {nil, `query ($a: Boolean = true) { x: __typename @skip(if: $a) }`, map[string]any{"a": nil}},
		"rows that are left out":   {&universe{seed: 1, spoilt: 100}, `{ searchMarkets { nodes { id } } }`, nil},
		"what has to be fetched":   {&universe{seed: 1, misses: 100}, `{ token(tokenId: "token-1") { price { price } } }`, nil},
		"what can't be had":        {&universe{seed: 1, failures: 100}, `{ token(tokenId: "token-1") { price { price } } }`, nil},
		"a page to be fetched":     {&universe{seed: 1, misses: 100}, `{ searchMarkets { nodes { id } } }`, nil},
		"too many conditions":      {nil, `query (` + strings.Join(many, ", ") + `) { a: __typename @skip(if: $v0) b: __typename @skip(if: $v1) c: __typename @skip(if: $v2) d: __typename @skip(if: $v3) e: __typename @skip(if: $v4) f: __typename @skip(if: $v5) g: __typename @skip(if: $v6) h: __typename @skip(if: $v7) i: __typename @skip(if: $v8) }`, nil},
		"too many fields":          {nil, `{ ` + wide + ` }`, nil},
		"a panic of a resolver":    {nil, `{ serviceStatus { version } }`, map[string]any{"panic": true}},
		"a bad argument further":   {nil, `{ viewer { positions { nodes { token { candles(interval: DAY, from: "2026-02-31") { open } } } } } }`, nil},
		"deferred parts":           {nil, `{ serviceStatus { ... @defer { version } } }`, nil},
		"a span that ends first":   {nil, `{ user(address: "` + string(wallets[0]) + `") { trades(from: "2026-03-10T00:00:00Z", to: "2026-03-01T00:00:00Z") { nodes { id } } } }`, nil},
		"a cursor of another list": {nil, `{ viewer { orders(after: "AAAA") { nodes { id } } } }`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			u := test.u
			if u == nil {
				u = &universe{seed: 3}
			}
			b := newBoth(t, u)
			b.panics = test.variables["panic"] == true
			o := b.mustParse(test.document, test.variables)
			before := u.fetched.Load()
			if data, ok := o.fromMemory(); ok {
				t.Errorf("it has the result %.200s", data)
			}
			if buf, ok := o.compiled.Execute(b.ctx, o.variables, []byte("before")); string(buf) != "before" || ok { // there isn't even a set
				t.Errorf("what is left is %q, %v", buf, ok)
			}
			if u.fetched.Load() != before {
				t.Error("something was fetched")
			}
		})
	}
}

// TestSwitchesAreBounded asks for one combination of conditions after the other: those of the first 16 are compiled.
func TestSwitchesAreBounded(t *testing.T) {
	const document = `query ($a: Boolean!, $b: Boolean!, $c: Boolean!, $d: Boolean!, $e: Boolean!) {
		a: __typename @skip(if: $a) b: __typename @skip(if: $b) c: __typename @skip(if: $c) d: __typename @skip(if: $d) e: __typename @include(if: $e) }`
	b := newBoth(t, &universe{})
	doc, errs := gqlparser.LoadQueryWithRules(b.schema, document, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	bytes := 0
	op := b.compiler.Operation(doc, doc.Operations[0], func(n int) { bytes += n })
	for round := range 2 {
		results := 0
		for n := range 32 {
			variables := map[string]any{}
			for i, name := range []string{"a", "b", "c", "d", "e"} {
				variables[name] = n&(1<<i) != 0
			}
			if _, ok := op.Execute(b.ctx, variables, nil); ok {
				results++
			}
		}
		if results != 16 {
			t.Errorf("round %d: %d combinations have a result", round, results)
		}
		if bytes < 16*2*100 || bytes > 16*5*1000 { // 2 to 5 fields each
			t.Errorf("round %d: %d bytes are told of", round, bytes)
		}
	}
}

// TestOneValueOfEach changes every value whenever it is read, so that an answer that reads one twice contradicts itself.
func TestOneValueOfEach(t *testing.T) {
	u := &universe{seed: 2}
	u.round.Store(1)
	b := newBoth(t, u)
	o := b.mustParse(`{
		a: token(tokenId: "token-1") { price { price } spread { midpoint bestBid } }
		b: token(tokenId: "token-1") { price { price } spread { midpoint bestBid } }
		tokenPrices(tokenIds: ["token-1", "token-1"]) { price }
		nodes(ids: ["`+model.EncodeID("Token", "token-1")+`"]) { ... on Token { price { price } } }
	}`, nil)
	for range 50 {
		data, ok := o.fromMemory()
		if !ok {
			t.Fatal("it has no result")
		}
		var got struct {
			A, B struct {
				Price  struct{ Price string }
				Spread any
			}
			TokenPrices []struct{ Price string }
			Nodes       []struct{ Price struct{ Price string } }
		}
		decode(t, data, &got)
		if p := got.A.Price; p != got.B.Price || p.Price != got.TokenPrices[0].Price || p.Price != got.TokenPrices[1].Price || p != got.Nodes[0].Price || fmt.Sprint(got.A.Spread) != fmt.Sprint(got.B.Spread) {
			t.Fatalf("one answer has several values: %s", data)
		}
	}
}

// TestManyAtOnce executes one operation on many goroutines, with different variables.
func TestManyAtOnce(t *testing.T) {
	b := newBoth(t, &universe{seed: 4})
	const document = `query ($ids: [String!]!, $on: Boolean!) { tokens(tokenIds: $ids) { tokenId price { price } ... @include(if: $on) { id market { question } } } }`
	o := b.mustParse(document, map[string]any{"ids": []string{}, "on": true})
	var g sync.WaitGroup
	for n := range 8 {
		g.Go(func() {
			mine := *o
			mine.variables = map[string]any{"ids": []any{tokenID(n), tokenID(n + 1)}, "on": n%2 == 0}
			for range 50 {
				if ok, _ := mine.compare(document); !ok {
					t.Error("it has no result")
				}
			}
		})
	}
	g.Wait()
}

// TestMake has the values of an execution in pieces, each its own, and those of gqlgen's one by one.
func TestMake(t *testing.T) {
	seen := map[*int]bool{}
	check := func(ctx context.Context) {
		for i := range 300 {
			p := compiled.Make[int](ctx)
			if *p != 0 || seen[p] {
				t.Fatalf("value %d is %d, or one of those before", i, *p)
			}
			*p, seen[p] = i+1, true
			if s := compiled.Make[string](ctx); *s != "" {
				t.Fatalf("a text is %q", *s)
			}
		}
	}
	check(context.Background())
	check(&compiled.Execution{Context: context.Background()})
	for _, ctx := range []context.Context{context.Background(), &compiled.Execution{Context: context.Background()}} {
		if list := compiled.MakeList[int](ctx, 0); list == nil || len(list) != 0 {
			t.Errorf("a list of nothing is %#v", list)
		}
	}
	x := &compiled.Execution{Context: context.Background()}
	if n := testing.AllocsPerRun(10, func() {
		for range 640 {
			compiled.Make[[4]int](x)
		}
	}); n > 11 {
		t.Errorf("640 values take %v allocations", n)
	}
}

// TestExecutionsAreUsedAgain has executions find nothing of those before them, whether those had a result, failed or panicked.
func TestExecutionsAreUsedAgain(t *testing.T) {
	type key struct{}
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { a(n: Int!): Int }"})
	end, runs := func(*compiled.Execution) {}, 0
	c := compiled.NewCompiler(schema, map[string]compiled.Type{"Query": {Fields: map[string]compiled.FieldOf{
		"a": {Number: 1, Arguments: func(_ context.Context, raw map[string]any) (any, error) { return raw["n"], nil }},
	}}}, func(x *compiled.Execution, s *compiled.Selection) {
		runs++
		if got := x.Arguments(&s.Fields[0]); got != runs {
			t.Errorf("execution %d has the argument %v", runs, got)
		}
		if x.Selects("a") || x.Failed() || x.Value(key{}) != runs || len(x.Buf) != 0 {
			t.Errorf("execution %d begins with what another has left", runs)
		}
		for range 2 {
			list, one, text := compiled.MakeList[int](x, runs%7), compiled.Make[int](x), compiled.Make[string](x)
			if slices.ContainsFunc(list, func(n int) bool { return n != 0 }) || *one != 0 || *text != "" {
				t.Errorf("execution %d gets %v, %d and %q", runs, list, *one, *text)
			}
			*one, *text = runs, "left"
			for i := range list {
				list[i] = runs
			}
		}
		x.Enter(&compiled.Field{Sub: s})
		end(x)
	})
	doc := gqlparser.MustLoadQueryWithRules(schema, `query ($n: Int!) { a(n: $n) }`, nil)
	o := c.Operation(doc, doc.Operations[0], func(int) {})
	for n := 1; n <= 90; n++ {
		end = [...]func(*compiled.Execution){func(*compiled.Execution) {}, (*compiled.Execution).Fail, func(*compiled.Execution) { panic("end") }}[n%3]
		if _, ok := o.Execute(context.WithValue(t.Context(), key{}, n), map[string]any{"n": n}, nil); ok != (n%3 == 0) {
			t.Errorf("execution %d: %v", n, ok)
		}
	}
	if runs != 90 {
		t.Errorf("%d executions", runs)
	}
}

// TestExecuteUsesTheBuffer has a result lie in the buffer that was good for the one before it, and another grow at once.
func TestExecuteUsesTheBuffer(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { a: Int }"})
	size := 1000
	c := compiled.NewCompiler(schema, map[string]compiled.Type{"Query": {Fields: map[string]compiled.FieldOf{"a": {Number: 1}}}}, func(x *compiled.Execution, _ *compiled.Selection) {
		for range size {
			x.Buf = append(x.Buf, 'a')
		}
	})
	doc := gqlparser.MustLoadQueryWithRules(schema, `{ a }`, nil)
	o := c.Operation(doc, doc.Operations[0], func(int) {})
	execute := func(buf []byte) []byte {
		data, ok := o.Execute(t.Context(), nil, buf)
		if !ok || string(data) != string(buf)+strings.Repeat("a", size) {
			t.Fatalf("%v, %s", ok, data)
		}
		return data
	}
	execute(nil)
	buf := make([]byte, 3, 3+size)
	if data := execute(buf); &data[0] != &buf[0] {
		t.Error("a buffer with enough room is not used")
	}
	if data := execute(buf[: 3 : 3+size-1]); &data[0] == &buf[0] || cap(data) < 3+size+size/8 {
		t.Errorf("a buffer without enough room becomes one of %d bytes", cap(data))
	}
	if n := testing.AllocsPerRun(10, func() { execute(nil) }); n > 4 {
		t.Errorf("a buffer of its own takes %v allocations", n)
	}
}

func TestExecutionIsAContext(t *testing.T) {
	type key struct{}
	x := &compiled.Execution{Context: context.WithValue(context.Background(), key{}, 1)}
	inner := context.WithValue(x, key{}, 2)
	if x.Value(key{}) != 1 || compiled.From(inner) != x || compiled.From(context.Background()) != nil || x.Selects("id") {
		t.Errorf("%v, %v", x.Value(key{}), compiled.From(inner))
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		graphql.MarshalString(s).MarshalGQL(&want)
		if got := compiled.AppendString([]byte("x"), s); string(got) != "x"+want.String() {
			t.Errorf("%q becomes %s instead of %s", s, got, &want)
		}
	})
}

// TestAppendStringEverywhere has every byte at every place of texts around the eight bytes that are looked at in one go.
func TestAppendStringEverywhere(t *testing.T) {
	for length := 1; length <= 17; length++ {
		for at := range length {
			for c := range 256 {
				text := []byte("abcdefghijklmnopq")[:length]
				text[at] = byte(c)
				var want bytes.Buffer
				graphql.MarshalString(string(text)).MarshalGQL(&want)
				if got := compiled.AppendString(nil, string(text)); string(got) != want.String() {
					t.Fatalf("%q becomes %s instead of %s", text, got, &want)
				}
			}
		}
	}
}

func TestAppendIntAndBoolean(t *testing.T) {
	for _, i := range []int{0, -1, 1 << 62, -1 << 63} {
		var want bytes.Buffer
		graphql.MarshalInt(i).MarshalGQL(&want)
		if got := compiled.AppendInt(nil, i); string(got) != want.String() {
			t.Errorf("%d becomes %s", i, got)
		}
	}
	if got := compiled.AppendBoolean(compiled.AppendBoolean(nil, true), false); string(got) != "truefalse" {
		t.Errorf("%s", got)
	}
}

// Arguments are decoded one by one where all is as it mostly is, and together by what knows the rest where it is not.
func TestArgumentsOneByOne(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { a(n: Int, m: Int, d: Int = 7): Int }`})
	type arguments struct{ n, m, d any }
	var got any
	var together bool
	c := compiled.NewCompiler(schema, map[string]compiled.Type{"Query": {Fields: map[string]compiled.FieldOf{"a": {
		Number: 1,
		Arguments: func(_ context.Context, raw map[string]any) (any, error) {
			together = true
			return &arguments{raw["n"], raw["m"], raw["d"]}, nil
		},
		New: func(x *compiled.Execution) any { return compiled.Make[arguments](x) },
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
	}}}}, func(x *compiled.Execution, s *compiled.Selection) {
		got = *x.Arguments(&s.Fields[0]).(*arguments)
		x.Buf = append(x.Buf, '1')
	})
	type variables = map[string]any
	for _, test := range []struct {
		document  string
		variables variables
		want      arguments
		together  bool
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
		got, together = nil, false
		if _, ok := c.Operation(doc, doc.Operations[0], func(int) {}).Execute(t.Context(), test.variables, nil); !ok || got != test.want || together != test.together {
			t.Errorf("%s with %v: %v, together: %v", test.document, test.variables, got, together)
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
		if got, ok := compiled.Strings(test.value); ok != test.ok || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%v gives %q, %v", test.value, got, ok)
		}
	}
}
