package limits

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"oddsgraph/graph/sdl"
)

// TestPublishedCosts checks that the published directives alone give the cost that the service computes. If fields share reads,
// the directives may give a higher cost.
func TestPublishedCosts(t *testing.T) {
	text, err := sdl.Print(schema().Types["Query"].Position.Src.Input, sdl.Options{Cost: Published})
	if err != nil {
		t.Fatal(err)
	}
	published := gqlparser.MustLoadSchema(&ast.Source{Input: text})
	g := newGuard(t, func(l *Limits) { l.Cost = math.MaxInt64 })
	estimate := func(text, variables string) (estimated, price int64) {
		t.Helper()
		doc, errs := gqlparser.LoadQueryWithRules(published, text, rules.NewDefaultRules())
		if errs != nil {
			t.Fatalf("%v: %s", errs, text)
		}
		given := map[string]any{}
		if variables != "" {
			if err := json.Unmarshal([]byte(variables), &given); err != nil {
				t.Fatal(err)
			}
		}
		values, err := validator.VariableValues(published, doc.Operations[0], given)
		if err != nil {
			t.Fatal(err)
		}
		e := estimator{published, values}
		price, err = priceOf(t, g, text, variables)
		if err != nil {
			t.Fatal(err)
		}
		return e.selection(doc.Operations[0].SelectionSet, nil, 0), price
	}
	for _, test := range []struct{ text, variables string }{
		{`{serviceStatus{version stream{state}}}`, ""},
		{`{tokens(tokenIds:["1","2","3"]){price{price} orderbook(depth:7){bids{price} asks{size}}}}`, ""},
		{`query($i:[String!]!){tokenPrices(tokenIds:$i){price}}`, `{"i":["1","2"]}`},
		{`{markets(marketIds:["1","2"]){tags category status}}`, ""},
		{`{searchMarkets{nodes{question}}}`, ""},
		{`{searchMarkets(first:30){edges{cursor node{description}} pageInfo{endCursor}}}`, ""},
		{`query($n:Int){searchMarkets(first:$n){nodes{tokens{price{price}}}}}`, `{"n":3}`},
		{`{event(eventId:"1"){markets(first:4){nodes{id}}}}`, ""},
		{`{token(tokenId:"1"){history{points{price volume}}}}`, ""},
		{`{token(tokenId:"1"){candles{open close} recentPrices{price}}}`, ""},
		{`{user(address:"0x2222222222222222222222222222222222222222"){balance{cashBalance} positions(first:80){nodes{market{id} size}}}}`, ""},
	} {
		estimated, price := estimate(test.text, test.variables)
		shared := strings.Contains(test.text, "event(") // the event and its markets share a read
		if estimated != price && !shared || estimated < price {
			t.Errorf("%s: the cost is %d points by the directives, and %d points by the service", test.text, estimated, price)
		}
	}
	for name, text := range typicalDocuments(t) {
		if strings.HasPrefix(name, "introspection") || strings.Contains(text, "subscription") {
			continue
		}
		variables, _ := os.ReadFile("../../examples/" + strings.TrimSuffix(name, ".graphql") + ".json")
		if estimated, price := estimate(text, string(variables)); estimated < price || estimated > 3*price {
			t.Errorf("%s: the cost is %d points by the directives, and %d points by the service", name, estimated, price)
		}
	}
}

// estimator computes costs only from the directives @cost and @listSize.
type estimator struct {
	schema    *ast.Schema
	variables map[string]any
}

// selection returns the cost of a selection set. sized contains the names of fields that return lists. Each of these lists has the
// length size.
func (e estimator) selection(set ast.SelectionSet, sized []string, size int64) (sum int64) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			sum += e.field(s, sized, size)
		case *ast.InlineFragment:
			sum += e.selection(s.SelectionSet, sized, size)
		case *ast.FragmentSpread:
			sum += e.selection(s.Definition.SelectionSet, sized, size)
		}
	}
	return sum
}

func (e estimator) field(f *ast.Field, sized []string, size int64) int64 {
	if strings.HasPrefix(f.Name, "__") {
		return 1
	}
	to := e.schema.Types[f.Definition.Type.Name()]
	weight := int64(1)
	if to.IsLeafType() {
		weight = 0
	}
	for _, d := range []*ast.Directive{to.Directives.ForName("cost"), f.Definition.Directives.ForName("cost")} {
		if d != nil {
			weight, _ = strconv.ParseInt(d.Arguments.ForName("weight").Value.Raw, 10, 64)
		}
	}
	items, below, sizedBelow := int64(1), int64(0), []string(nil)
	if slices.Contains(sized, f.Name) {
		items = size
	}
	if d := f.Definition.Directives.ForName("listSize"); d != nil {
		n := e.size(f, d)
		if fields := d.Arguments.ForName("sizedFields"); fields != nil {
			below = n
			for _, child := range fields.Value.Children {
				sizedBelow = append(sizedBelow, child.Value.Raw)
			}
		} else {
			items = n
		}
	}
	return items * (weight + e.selection(f.SelectionSet, sizedBelow, below))
}

// size returns the size of a list according to its @listSize.
func (e estimator) size(f *ast.Field, d *ast.Directive) (n int64) {
	if assumed := d.Arguments.ForName("assumedSize"); assumed != nil {
		n, _ = strconv.ParseInt(assumed.Value.Raw, 10, 64)
	}
	if slicing := d.Arguments.ForName("slicingArguments"); slicing != nil {
		if a := f.Arguments.ForName(slicing.Value.Children[0].Value.Raw); a != nil {
			v, err := a.Value.Value(e.variables)
			if err != nil {
				panic(err)
			}
			switch v := v.(type) {
			case []any:
				n = int64(len(v))
			case int64:
				n = v
			case float64:
				n = int64(v)
			case json.Number:
				n, _ = v.Int64()
			}
		}
	}
	return n
}
