package limits

import (
	"testing"

	"github.com/vektah/gqlparser/v2/validator"
)

// FuzzDocument checks that the guard does not panic, and that accepted documents are validated, compiled and evaluated in a
// limited number of steps.
func FuzzDocument(f *testing.F) {
	for _, text := range typicalDocuments(f) {
		f.Add(text)
	}
	for _, test := range hostileDocuments() {
		if len(test.text) < 4000 {
			f.Add(test.text)
		}
	}
	for _, text := range append(cyclesOfSecondDefinitions(),
		`query($n:Int=3,$i:[String!]!){searchMarkets(first:$n,filter:{status:[OPEN]}){nodes{id}} tokens(tokenIds:$i){price@include(if:true){price}}}`,
		`subscription s{priceChanged(tokenIds:["1"]){token{...T}}}fragment T on Token{market{tokens{...U}}}fragment U on Token{id}`,
		`{node(id:"x"){id ...on Market{question} ...on Token{market{...M}}}}fragment M on Market{tokens{price{token{id}}}}`,
		`mutation{a}`, `{a(b:{c:[{d:$e}]})}`, `{__type(name:"Market"){fields{type{ofType{name}}}}}`, `query($v:[[Int!]!]=[[1]]){a(b:$v)}`, "{a(b:\"\"\"x\n y\"\"\")}", `{a(b:"\uD83D\uDE00\u{41}",c:"""\u{41}""")}`, `{a(b:"\uDE00")}`,
	) {
		f.Add(text)
	}
	g := newGuard(f)
	s := schema()
	f.Fuzz(func(t *testing.T, text string) {
		var steps uint64
		measure := func(what string, f func()) {
			_, steps = countAllocations(f)
			if steps > maxSteps {
				t.Errorf("%s the document took %d allocations, want at most %d", what, steps, maxSteps)
			}
		}
		measure("measuring", func() {
			doc, err := g.Document(text)
			if (err == nil) == (Rule(err) != "") {
				t.Errorf("the error %v has the rule %q; want a rule for every error, and no rule without an error", err, Rule(err))
			}
			if err != nil {
				return
			}
			valid := false
			measure("validating", func() { valid = validator.ValidateWithRules(s, doc, nil) == nil })
			if !valid {
				return
			}
			for _, op := range doc.Operations {
				measure("compiling", func() {
					points, err := g.Compile(doc, op).Cost(nil)
					if points < 0 || (points > Default().Cost) != (err != nil) {
						t.Errorf("the operation costs %d points, error %v; want an error only above %d points", points, err, Default().Cost)
					}
				})
			}
		})
	})
}
