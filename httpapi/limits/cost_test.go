package limits

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/internal/market"
)

// priceOf returns the cost of a document's first operation in points. variables is a JSON object, or empty.
func priceOf(t testing.TB, g *Guard, text, variables string) (int64, error) {
	t.Helper()
	doc := mustAccept(t, g, text)
	return g.Compile(doc, doc.Operations[0]).Cost(coerceVariables(t, doc.Operations[0], variables))
}

func coerceVariables(t testing.TB, op *ast.OperationDefinition, variables string) map[string]any {
	t.Helper()
	var given map[string]any
	if variables != "" {
		dec := json.NewDecoder(strings.NewReader(variables))
		dec.UseNumber()
		if err := dec.Decode(&given); err != nil {
			t.Fatal(err)
		}
	}
	values, err := validator.VariableValues(schema(), op, given)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// list returns a JSON list of n equal ids.
func list(n int) string {
	return `["` + strings.Join(strings.Split(strings.Repeat("7", n), ""), `","`) + `"]`
}

// TestCost compares costs with values, keys and calls that were counted by hand.
func TestCost(t *testing.T) {
	const user = `user(address:"0x2222222222222222222222222222222222222222")`
	for _, test := range []struct {
		text, variables     string
		values, keys, calls int64
	}{
		{`{serviceStatus{version stream{state}}}`, "", 4, 0, 0},
		{`{__typename a:__typename}`, "", 2, 0, 0},
		{`{token(tokenId:"1"){id tokenId}}`, "", 3, 0, 0},
		// Keys: fields of one object that need the same read share a key, in any order and with any aliases.
		{`{token(tokenId:"1"){price{price}}}`, "", 3, 1, 0},
		{`{a:token(tokenId:"1"){price{price}} b:token(tokenId:"2"){price{price}}}`, "", 6, 2, 0},
		{`{token(tokenId:"1"){price{price} spread{spread}}}`, "", 5, 2, 0},
		{`{token(tokenId:"1"){price{price} p:price{basis}}}`, "", 5, 1, 0},
		{`{token(tokenId:"1"){outcome outcomeKind winner market{id}}}`, "", 6, 1, 0},
		{`{tokens(tokenIds:` + list(41) + `){price{price}}}`, "", 123, 41, 0},
		{`query($i:[String!]!){tokens(tokenIds:$i){price{price}}}`, `{"i":` + list(41) + `}`, 123, 41, 0},
		{`query($i:[String!]!){tokens(tokenIds:$i){price{price}}}`, `{"i":"1"}`, 3, 1, 0},
		{`query($i:[String!]!){tokens(tokenIds:$i){price{price}}}`, `{"i":[]}`, 0, 0, 0},
		{`query($i:[String!]!){tokens(tokenIds:$i){price{price}}}`, `{"i":` + list(700) + `}`, 1500, 500, 0},
		{`query($i:String!){tokens(tokenIds:[$i,"2"]){price{price}}}`, `{"i":"1"}`, 6, 2, 0},
		{`{tokens(tokenIds:"1"){price{price}}}`, "", 3, 1, 0},
		{`{tokenPrices(tokenIds:` + list(21) + `){price} spreads(tokenIds:["1"]){spread}}`, "", 44, 22, 0},
		{`{node(id:"x"){id}}`, "", 2, 1, 0},
		{`query($i:[ID!]!){nodes(ids:$i){id ...on Token{price{price}}}}`, `{"i":["1","2"]}`, 2 * 4, 2 * 2, 0},
		// Calls of each kind:
		{`{tokens(tokenIds:` + list(3) + `){orderbook{midpoint}}}`, "", 9, 0, 3},
		{`{tokens(tokenIds:` + list(3) + `){orderbook{midpoint} fillEstimate(side:BUY,size:1){complete}}}`, "", 15, 0, 3},
		{`{token(tokenId:"1"){history{from} candles{open}}}`, "", 1 + 2 + 200, 0, 2},
		{`{token(tokenId:"1"){history{points{price}}}}`, "", 1 + 1 + 200, 0, 1},
		{`{tokens(tokenIds:` + list(3) + `){price{price} sparkline change24h}}`, "", 3 * (1 + 2 + 24 + 1), 3, 3},
		{`{token(tokenId:"1"){short:sparkline(points:2) long:sparkline(points:500)}}`, "", 1 + 2 + 100, 0, 1},
		{`{tokens(tokenIds:` + list(3) + `){recentPrices{price}}}`, "", 3 * (1 + 200), 0, 0},
		{`{token(tokenId:"1"){orderbook{bids{price} asks{price}}}}`, "", 2 + 40 + 40, 0, 1},
		{`{token(tokenId:"1"){orderbook(depth:3){bids{price size}}}}`, "", 2 + 9, 0, 1},
		{`{token(tokenId:"1"){orderbook(depth:5000){bids{price}}}}`, "", 2 + 400, 0, 1},
		// The response to a request by id contains the details of a market. The response to a search does not.
		{`{market(marketId:"1"){description tokens{outcome}}}`, "", 1 + 20 + 4, 1, 0},
		{`{market(slug:"1"){id}}`, "", 2, 1, 0},
		{`{markets(marketIds:` + list(80) + `){resolution{source winningToken{winner}}}}`, "", 80 * 5, 80, 0},
		{`subscription{questionChanged(questionId:"q"){question{comparable legs{rules token{orderbook(depth:2){bids{price}}}}}}}`, "", 3 + 2*(4+2*2), 2, 2}, // the event has the books
		{`{searchMarkets{nodes{question tokens{outcome market{question}}}}}`, "", 1 + 20*2 + 40*4, 0, 1},
		{`{searchMarkets(first:30){nodes{description resolution{source}}}}`, "", 1 + 30*(4+19), 30, 1},
		{`{searchMarkets(first:30){edges{cursor node{tokens{price{price}}}} pageInfo{endCursor}}}`, "", 1 + 2 + 30*(3+2*3), 60, 1},
		{`{searchMarkets(venues:["a","b","c"],first:2){nodes{id}} searchEvents(venues:"a",first:1){totalCount}}`, "", 2 + 4 + 1, 0, 4},
		{`query($v:[String!]){searchEvents(venues:$v,first:1){totalCount}}`, `{"v":["a","b"]}`, 2, 0, 2},
		{`query($v:[String!]){searchEvents(venues:$v,first:1){totalCount}}`, `{"v":[]}`, 2, 0, 1},
		{`{searchMarkets(first:-5){nodes{description}}}`, "", 1, 0, 1},
		{`{searchMarkets(first:100000000000){nodes{id}}}`, "", 1 + 200, 0, 1},
		{`{searchMarkets(first:null){nodes{id}}}`, "", 1 + 40, 0, 1},
		{`query($n:Int){searchMarkets(first:$n){nodes{id}}}`, "", 1 + 40, 0, 1},
		{`query($n:Int){searchMarkets(first:$n){nodes{id}}}`, `{"n":null}`, 1 + 40, 0, 1},
		{`query($n:Int=7){searchMarkets(first:$n){nodes{id}}}`, "", 1 + 14, 0, 1},
		{`query($n:Int=7){searchMarkets(first:$n){nodes{id}}}`, `{"n":3}`, 1 + 6, 0, 1},
		{`query($n:Int){searchMarkets(first:$n){nodes{id}}}`, `{"n":-3}`, 1, 0, 1},
		{`query($n:Int){searchMarkets(first:$n){nodes{id}}}`, `{"n":2147483647}`, 1 + 200, 0, 1},
		// The title of an event needs no call. All other fields of the event share one call.
		{`{event(eventId:"1"){title startsAt markets(first:50){nodes{tokens{price{price}}}}}}`, "", 1 + 3 + 50*(1+2*3), 100, 1},
		{`{markets(marketIds:["1","2","3"]){event{title}}}`, "", 3 * 3, 3, 0},
		{`{markets(marketIds:["1","2","3"]){event{volume endsAt}}}`, "", 3 * 4, 3, 3},
		{`{markets(marketIds:["1","2","3"]){event{markets(first:3){nodes{tokens{price{price}}}}}}}`, "", 3 * (1 + 1 + 1 + 3*(1+2*3)), 3 + 18, 3},
		{`{token(tokenId:"1"){price{price} market{tokens{price{price}}}}}`, "", 4 + 2*3, 1 + 1 + 2, 0},
		// Data of accounts:
		{`{` + user + `{id address}}`, "", 3, 0, 0},
		{`{` + user + `{balance{id} b:balance{cashBalance} orders{totalCount}}}`, "", 7, 0, 2},
		{`{` + user + `{trades{nodes{price}} b:trades(first:10){nodes{price}}}}`, "", 1 + 1 + 100 + 1 + 20, 0, 2},
		{`{` + user + `{positions(first:80){nodes{redeemable market{id} valuation{value}}}}}`, "", 2 + 80*6, 80 * 2, 1},
		{`{` + user + `{positions{totalCount} portfolio{totalValue availableCash}}}`, "", 6, 0, 1 + 2},
		// Fields with equal response keys count as one field, even across fragments. A field with a condition counts if the variables
		// select it.
		{`{token(tokenId:"1"){price{price}...F price{basis}} ...G}fragment F on Token{price{price id}}fragment G on Query{token(tokenId:"1"){id}}`, "", 1 + 1 + 4, 1, 0},
		{`query($a:Boolean!){token(tokenId:"1"){price@include(if:$a){price}}}`, `{"a":true}`, 3, 1, 0},
		{`query($a:Boolean!){token(tokenId:"1"){price@include(if:$a){price}}}`, `{"a":false}`, 1, 0, 0},
		{`query($a:Boolean!){token(tokenId:"1"){price@skip(if:$a){price} id@skip(if:$a)}}`, `{"a":true}`, 1, 0, 0},
		{`query($a:Boolean!){token(tokenId:"1"){price@skip(if:$a){price} id@skip(if:$a)}}`, `{"a":false}`, 4, 1, 0},
		{`query($a:Boolean!){token(tokenId:"1"){...@include(if:$a){orderbook{midpoint}} ...F@skip(if:$a)}}fragment F on Token{spread{id}}`, `{"a":true}`, 3, 0, 1},
		{`query($a:Boolean!,$b:Boolean!){token(tokenId:"1"){...@include(if:$a){orderbook@include(if:$b){midpoint}}}}`, `{"a":true,"b":false}`, 1, 0, 0},
		{`query($a:Boolean!,$b:Boolean!){token(tokenId:"1"){...@include(if:$a){orderbook@include(if:$b){midpoint}}}}`, `{"a":false,"b":true}`, 1, 0, 0},
		{`query($a:Boolean!,$b:Boolean!){token(tokenId:"1"){...@include(if:$a){orderbook@include(if:$b){midpoint}}}}`, `{"a":true,"b":true}`, 3, 0, 1},
		{`query($a:Boolean!){token(tokenId:"1"){price{price} b:price@include(if:$a){basis}}}`, `{"a":false}`, 3, 1, 0},
		{`query($a:Boolean!){token(tokenId:"1"){price@include(if:$a){price} price{basis}}}`, `{"a":false}`, 3, 1, 0},
		{`{token(tokenId:"1"){price@include(if:false){price} spread@skip(if:true){id} id@include(if:true)}}`, "", 2, 0, 0},
		// Two fields share a call. If the variables exclude the first field, the second field pays for the call.
		{`query($a:Boolean!){token(tokenId:"1"){o:orderbook@include(if:$a){midpoint} orderbook{midpoint}}}`, `{"a":false}`, 3, 0, 1},
		// A subscription costs as much as its first events.
		{`subscription{priceChanged(tokenIds:` + list(50) + `){token{tokenId price{price}} price{price}}}`, "", 50 * 7, 50, 0},
		{`subscription{priceChanged(tokenIds:` + list(3) + `){token{history{from}}}}`, "", 3 * 4, 3, 3},
		{`subscription{orderbookChanged(tokenId:"1",depth:10){bids{price} book{asks{price}} token{orderbook{hash}}}}`, "", 1 + 20 + 1 + 20 + 3, 0, 1},
		{`subscription{marketChanged(marketIds:["1","2"]){market{description}}}`, "", 6 + 2*19, 2, 0},
		{`subscription{portfolioChanged(address:"0x2222222222222222222222222222222222222222"){reason}}`, "", 2, 0, 3},
		{`subscription{streamStatusChanged{state}}`, "", 2, 0, 0},
	} {
		points, err := priceOf(t, newGuard(t, func(l *Limits) { l.Cost = math.MaxInt64 }), test.text, test.variables)
		if want := test.values + keyPoints*test.keys + callPoints*test.calls; err != nil || points != want {
			t.Errorf("%s %s\n costs %d points (error %v), want %d points", test.text, test.variables, points, err, want)
		}
	}
}

// TestCostOfTypicalDocuments checks that typical requests of frontends cost at most half of the default limit.
func TestCostOfTypicalDocuments(t *testing.T) {
	g := newGuard(t)
	documents := typicalDocuments(t)
	variables := map[string]string{}
	for name := range documents {
		if b, err := os.ReadFile("../../examples/" + strings.TrimSuffix(name, ".graphql") + ".json"); err == nil {
			variables[name] = string(b)
		}
	}
	documents["200 tokens"] = `query($i:[String!]!){tokens(tokenIds:$i){id tokenId outcome price{price basis freshness{stale}} spread{bestBid bestAsk}}}`
	variables["200 tokens"] = `{"i":` + list(200) + `}`
	documents["a wallet's page"] = `{user(address:"0x2222222222222222222222222222222222222222"){
		balance{cashBalance totalValue}
		positions(first:50){nodes{id size avgPrice outcome market{id question status} token{id price{price}} valuation{value unrealizedPnl}}}
		orders{nodes{id side price size market{question}}}
		history(first:50){nodes{kind amount timestamp}}}}`
	documents["two books"] = `{market(marketId:"1"){question description tokens{outcome price{price} spread{bestBid bestAsk} orderbook(depth:50){bids{price size} asks{price size}}}}}`
	for name, text := range documents {
		points, err := priceOf(t, g, text, variables[name])
		if err != nil || 2*points > Default().Cost {
			t.Errorf("%s costs %d points (error %v), want at most half of %d points", name, points, err, Default().Cost)
		}
		t.Log(name, points)
	}
}

// TestCostIsRefused checks the error for a cost above the limit, and that the sum does not overflow.
func TestCostIsRefused(t *testing.T) {
	g := newGuard(t)
	for _, test := range []struct{ text, says string }{
		{`{searchMarkets(first:100){nodes{tokens{orderbook{midpoint} history{points{price}}}}}}`,
			"the operation costs 441901 points; at most 100000 are accepted. searchMarkets.nodes.tokens.orderbook costs most of all, 200400 points: request fewer items at once"},
		{`{searchMarkets(first:100){nodes{event{markets(first:500){nodes{id slug question}}}}}}`,
			"searchMarkets.nodes.event.markets.nodes costs most of all, 200000 points"},
		{`{event(eventId:"1"){m:markets(first:500){nodes{event{markets(first:500){nodes{event{markets(first:500){nodes{event{markets(first:500){nodes{event{volume}}}}}}}}}}}}}}`,
			". …s.nodes.event.markets.nodes.event.markets.nodes.event.volume costs most of all, 62562500000000 points"},
		{`{many:tokens(tokenIds:` + list(500) + `){price{price}} few:tokens(tokenIds:` + list(99) + `){orderbook{midpoint}}}`,
			"the operation costs 120797 points; at most 100000 are accepted. few.orderbook costs most of all, 99198 points"},
		{`subscription{priceChanged(tokenIds:` + list(500) + `){token{history{from}}}}`, "priceChanged.token.history costs most of all, 501000 points"},
	} {
		points, err := priceOf(t, g, test.text, "")
		var known *market.Error
		if Rule(err) != RuleCost || !errors.As(err, &known) || known.Code != market.CodeBadUserInput || !strings.Contains(known.Message, test.says) {
			t.Errorf("%s\n costs %d points, error %v; want an error that contains %q", test.text, points, err, test.says)
		}
		if points <= Default().Cost {
			t.Errorf("%s\n was refused with %d points, want more than %d points", test.text, points, Default().Cost)
		}
	}
	depth := 9
	text := `{event(eventId:"1"){` + strings.Repeat("markets(first:500){nodes{event{", depth) + "volume" + strings.Repeat("}}}", depth) + "}}"
	points, err := priceOf(t, newGuard(t, func(l *Limits) { l.Depth = 100 }), text, "")
	if Rule(err) != RuleCost || points != math.MaxInt64 {
		t.Errorf("a sum that overflows: %d points, error %v; want math.MaxInt64 points and the rule %s", points, err, RuleCost)
	}
}

func TestCostAtTheLimit(t *testing.T) {
	for limit, rule := range map[int64]string{42: "", 41: RuleCost} {
		_, err := priceOf(t, newGuard(t, func(l *Limits) { l.Cost = limit }), `query($i:[String!]!){tokens(tokenIds:$i){id}}`, `{"i":`+list(21)+`}`)
		if Rule(err) != rule {
			t.Errorf("42 points with the limit %d: error %v, want the rule %q", limit, err, rule)
		}
	}
}

// TestVariablesOfAllForms checks variables of every Go type that a number or a list may have after validation.
func TestVariablesOfAllForms(t *testing.T) {
	g := newGuard(t)
	doc := mustAccept(t, g, `query($n:Int,$i:[ID!]!){searchMarkets(first:$n){nodes{id}} nodes(ids:$i){id}}`)
	plan := g.Compile(doc, doc.Operations[0])
	for _, test := range []struct {
		n, i         any
		values, keys int64
	}{
		{int64(3), []any{"x", "y"}, 1 + 6 + 4, 2},
		{3, []string{"x", "y"}, 1 + 6 + 4, 2},
		{json.Number("3"), "x", 1 + 6 + 2, 1},
		{"3", []int64{1, 2}, 1 + 6 + 4, 2},
		{3.0, []any{}, 1 + 6, 0},
		{1e300, []any{}, 1 + 200, 0},
		{-1e300, []any{}, 1, 0},
		{json.Number("1e9"), []any{}, 1 + 200, 0},
		{json.Number("-9999999999999999999999"), []any{}, 1, 0},
		{true, 7, 1 + 200 + 2, 1},
	} {
		points, err := plan.Cost(map[string]any{"n": test.n, "i": test.i})
		if want := test.values + callPoints + keyPoints*test.keys; err != nil || points != want {
			t.Errorf("the variables %#v and %#v: %d points, error %v; want %d points", test.n, test.i, points, err, want)
		}
	}
}

// TestPlansAreShared checks that concurrent calls of Cost do not change each other's results.
func TestPlansAreShared(t *testing.T) {
	g := newGuard(t)
	doc := mustAccept(t, g, `query($n:Int,$i:[String!]!){searchMarkets(first:$n){nodes{tokens{price{price}}}} tokens(tokenIds:$i){price{price}}}`)
	plan := g.Compile(doc, doc.Operations[0])
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			n := int64(worker)
			variables := map[string]any{"n": n, "i": []any{"1"}}
			want := 1 + n*(1+2*3) + 3 + callPoints + keyPoints*(2*n+1)
			for range 100 {
				if points, err := plan.Cost(variables); err != nil || points != want {
					t.Errorf("Cost with n = %d returned %d points, error %v; want %d points", n, points, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCostDoesNotAllocate(t *testing.T) {
	g := newGuard(t)
	for name, text := range typicalDocuments(t) {
		doc := mustAccept(t, g, text)
		plan := g.Compile(doc, doc.Operations[0])
		variables := map[string]any{"first": int64(20), "depth": json.Number("10"), "tokenIds": []any{"1", "2"}}
		if n := testing.AllocsPerRun(100, func() { _, _ = plan.Cost(variables) }); n > 0 {
			t.Errorf("%s: Cost takes %v allocations, want 0", name, n)
		}
	}
}

// TestRefusalNamesAField checks that the error names the most expensive field, even if cheaper fields together cost more.
func TestRefusalNamesAField(t *testing.T) {
	g := newGuard(t, func(l *Limits) { l.Cost = 3 })
	for text, says := range map[string]string{
		`{a:__typename b:__typename c:__typename serviceStatus{version}}`:     "serviceStatus costs most of all, 2 points",
		`{a:__typename b:__typename c:__typename token(tokenId:"1"){winner}}`: "token.winner costs most of all, 41 points",
	} {
		if _, err := priceOf(t, g, text, ""); err == nil || !strings.Contains(err.Error(), ". "+says) {
			t.Errorf("%s\n was refused with the error %v, want an error that contains %q", text, err, says)
		}
	}
}

func TestSaturation(t *testing.T) {
	const most = math.MaxInt64
	for _, test := range []struct{ got, want int64 }{
		{addSat(1, 2), 3}, {addSat(most, 0), most}, {addSat(most-1, 0), most - 1}, {addSat(most-1, 1), most}, {addSat(most, 1), most}, {addSat(most, most), most},
		{mulSat(2, 3), 6}, {mulSat(0, most), 0}, {mulSat(most, 0), 0}, {mulSat(most, 1), most}, {mulSat(most/2, 2), most - 1}, {mulSat(most/2, 3), most}, {mulSat(1<<32, 1<<32), most}, {mulSat(most, most), most},
	} {
		if test.got != test.want {
			t.Errorf("got %d, want %d", test.got, test.want)
		}
	}
}

// TestLargePlan checks the cost of a plan that is too large for the scratch array of Cost.
func TestLargePlan(t *testing.T) {
	g := newGuard(t)
	points, err := priceOf(t, g, "{"+repeat(70, func(i int) string { return fmt.Sprintf(`t%d:token(tokenId:"%d"){price{price} spread{id}}`, i, i) })+"}", "")
	if want := int64(70 * (5 + 2*keyPoints)); err != nil || points != want {
		t.Errorf("the plan costs %d points, error %v; want %d points", points, err, want)
	}
}
