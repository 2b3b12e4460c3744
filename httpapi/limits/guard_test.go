package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/internal/market"
)

var schema = sync.OnceValue(func() *ast.Schema {
	text, err := os.ReadFile("../../schema.graphqls")
	if err != nil {
		panic(err)
	}
	return gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphqls", Input: string(text)})
})

// newGuard returns a guard with the default limits, which the functions in set may change.
func newGuard(t testing.TB, set ...func(*Limits)) *Guard {
	t.Helper()
	limits := Default()
	for _, f := range set {
		f(&limits)
	}
	g, err := New(limits, schema())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// mustAccept parses a document with the guard and validates it. It fails the test if the document is refused or invalid.
func mustAccept(t testing.TB, g *Guard, text string) *ast.QueryDocument {
	t.Helper()
	doc, err := g.Document(text)
	if err != nil {
		t.Fatalf("%.200s\n%v", text, err)
	}
	if errs := validator.ValidateWithRules(schema(), doc, nil); errs != nil {
		t.Fatalf("%.200s\n%v", text, errs)
	}
	return doc
}

// repeat returns the concatenation of f(0) to f(n-1).
func repeat(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// TestLimits checks each limit with two documents: one at the limit, and one that exceeds the limit by one.
func TestLimits(t *testing.T) {
	for _, test := range []struct {
		rule string
		// limit returns the limit to test, which the test sets to 7. text(n) returns a document for which the measured value is n.
		limit func(*Limits) *int
		text  func(n int) string
		says  string
	}{
		{RuleDocumentBytes, func(l *Limits) *int { return &l.DocumentBytes }, func(n int) string { return "{a}" + strings.Repeat(" ", n-3) }, "the document has 8 bytes; at most 7"},
		{RuleTokens, func(l *Limits) *int { return &l.Tokens }, func(n int) string { return "{" + repeat(n-2, numbered(" a%d")) + "}" }, "more than 7 tokens"},
		{RuleTokens, func(l *Limits) *int { return &l.Tokens }, func(n int) string { return strings.Repeat("# a\n", n-3) + "{a}" }, "more than 7 tokens"},
		{RuleTokens, func(l *Limits) *int { return &l.Tokens }, func(n int) string { return "{a}" + strings.Repeat(" # a\n", n-3) }, "more than 7 tokens"},
		{RuleNameBytes, func(l *Limits) *int { return &l.NameBytes }, func(n int) string { return "{" + strings.Repeat("a", n) + "}" }, "the name aaaaaaaa has 8 bytes; at most 7"},
		{RuleOperations, func(l *Limits) *int { return &l.Operations }, func(n int) string { return repeat(n, numbered("query q%d{a}")) }, "defines 8 operations; at most 7"},
		{RuleFragments, func(l *Limits) *int { return &l.Fragments }, func(n int) string {
			return "{" + repeat(n, numbered("...f%d ")) + "}" + repeat(n, numbered("fragment f%d on Q{a}"))
		}, "defines 8 fragments; at most 7"},
		{RuleSelections, func(l *Limits) *int { return &l.Selections }, func(n int) string { return "{" + repeat(n, numbered("a%d ")) + "}" }, "selects 8 fields and fragments"},
		{RuleSelections, func(l *Limits) *int { return &l.Selections }, func(n int) string { // two operations with 3 selections each, and n-6 other fields
			return "{...f}query a{...f}query b{" + repeat(n-6, numbered("a%d ")) + "}fragment f on Q{a b}"
		}, "selects 8 fields and fragments"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string { return strings.Repeat("{a", n) + strings.Repeat("}", n) }, "nested 8 deep; at most 7"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string { return strings.Repeat("{...", n-1) + "{a" + strings.Repeat("}", n) }, "nested 8 deep; at most 7"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string { // the depth of the operation includes both fragments
			return "{a{b{c ...f}}}fragment f on Q{d{e{...g}}}fragment g on Q" + strings.Repeat("{g", n-4) + strings.Repeat("}", n-4)
		}, "nested 8 deep; at most 7"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string {
			return "{a(b:" + strings.Repeat("[", n) + strings.Repeat("]", n) + ")}"
		}, "a value is nested more than 7 deep"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string {
			return "{a@d(b:" + strings.Repeat("{a:", n) + "1" + strings.Repeat("}", n) + ")}"
		}, "a value is nested more than 7 deep"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string {
			return "query($v:I=" + strings.Repeat("[", n) + strings.Repeat("]", n) + "){a}"
		}, "a value is nested more than 7 deep"},
		{RuleDepth, func(l *Limits) *int { return &l.Depth }, func(n int) string {
			return "query($v:" + strings.Repeat("[", n) + "I" + strings.Repeat("]", n) + "){a}"
		}, "the type of the variable $v is nested 8 deep"},
		{RuleRepeats, func(l *Limits) *int { return &l.Repeats }, func(n int) string { return "{" + strings.Repeat("a ", n) + "}" }, "a is selected 8 times on the same object; at most 7"},
		{RuleRepeats, func(l *Limits) *int { return &l.Repeats }, func(n int) string { // the three fields o are merged into one object
			return "{o{a ...f} o{...on X{a} ...f} ...{o{" + strings.Repeat("a ", n-4) + "}}}fragment f on Q{a}"
		}, "a is selected 8 times"},
		{RuleRepeats, func(l *Limits) *int { return &l.Repeats }, func(n int) string { // the fragment is not spread
			return "{a}fragment f on Q{" + strings.Repeat("a ", n) + "}"
		}, "a is selected 8 times"},
		{RuleRepeats, func(l *Limits) *int { return &l.Repeats }, func(n int) string { // the second fragment with the name f exceeds the limit
			return "{...f}fragment f on Q{a}fragment f on Q{" + strings.Repeat("a ", n) + "}"
		}, "a is selected 8 times"},
	} {
		g := newGuard(t, func(l *Limits) {
			l.DocumentBytes = 1000
			*test.limit(l) = 7
		})
		text := test.text(7)
		if _, err := g.Document(text); err != nil {
			t.Errorf("%s: a document at the limit was refused: %s\n %v", test.rule, text, err)
		}
		text = test.text(8)
		_, err := g.Document(text)
		var known *market.Error
		if Rule(err) != test.rule || !errors.As(err, &known) || known.Code != market.CodeBadUserInput || !strings.Contains(known.Message, test.says) {
			t.Errorf("%s: a document past the limit: %s\n Document returned %v (rule %q), want an error that contains %q", test.rule, text, err, Rule(err), test.says)
		}
	}
}

// TestNames checks that a long name is refused in every place where a document can have a name.
func TestNames(t *testing.T) {
	g := newGuard(t, func(l *Limits) { l.NameBytes = 12 })
	for _, place := range []string{
		"query NAME{a}", "query($NAME:I){a}", "query($v:NAME){a}", "query($v:[NAME!]){a}", "query($v:I=NAME){a}", "query($v:I@NAME){a}", "query@NAME{a}",
		"{NAME}", "{NAME:a}", "{a:NAME}", "{a(NAME:1)}", "{a(b:$NAME)}", "{a(b:NAME)}", "{a(b:[{NAME:1}])}", "{a(b:[[NAME]])}", "{a@NAME}", "{a@b(NAME:1)}", "{a{b{NAME}}}",
		"{...NAME}", "{...on NAME{a}}", "{...@NAME{a}}", "{...f@NAME}", "{a}fragment NAME on Q{a}", "{a}fragment f on NAME{a}", "{a}fragment f on Q@NAME{a}", "{a}fragment f($v:NAME) on Q{a}",
	} {
		if _, err := g.Document(strings.Replace(place, "NAME", "abcdefghijkl", 1)); err != nil {
			t.Errorf("%s with a name of 12 bytes was refused: %v", place, err)
		}
		if _, err := g.Document(strings.Replace(place, "NAME", "abcdefghijklm", 1)); Rule(err) != RuleNameBytes {
			t.Errorf("%s with a name of 13 bytes: error %v, want the rule %s", place, err, RuleNameBytes)
		}
	}
}

// TestFragmentCycles checks that documents with cycles of fragments are refused. Without the refusal, validation of the last
// document of the first list would never end.
func TestFragmentCycles(t *testing.T) {
	g := newGuard(t)
	for _, text := range []string{
		"{...A}fragment A on Query{...A}",
		"{...A}fragment A on Query{...B}fragment B on Query{...A}",
		"{...A}fragment A on Query{...{...B}}fragment B on Query{a{...C}}fragment C on Query{b{c{...A}}}",
		"{__typename}fragment A on Query{...A}",
		"{__typename}fragment A on Query{__typename}fragment B on Query{...C}fragment C on Query{a{...B}}",
		"{__typename}fragment A on Query{a}fragment A on Query{...B}fragment B on Query{...B}",
		`{token(tokenId:"1"){price{token{...C}} ...A}}fragment A on Token{price{token{...C}} ...B}fragment B on Token{price{token{...C}} ...A}fragment C on Token{id}`,
	} {
		if _, err := g.Document(text); Rule(err) != RuleFragmentCycle || !strings.Contains(err.Error(), "spreads itself") {
			t.Errorf("%s\n has a cycle of fragments, but Document returned the error %v", text, err)
		}
	}
	for _, text := range []string{
		"{...A ...B}fragment A on Query{...B}fragment B on Query{__typename}",
		"{...A ...A}fragment A on Query{...C ...B}fragment B on Query{...C}fragment C on Query{__typename}",
		"{...unknown}",
	} {
		if _, err := g.Document(text); err != nil {
			t.Errorf("%s\n has no cycle of fragments, but was refused: %v", text, err)
		}
	}
}

// cyclesOfSecondDefinitions returns documents that define a fragment twice. Only the second definition is part of a cycle.
func cyclesOfSecondDefinitions() []string {
	return []string{
		"{...A}fragment A on Query{__typename}fragment A on Query{...A}",
		"{...A}fragment A on Query{__typename}fragment A on Query{...B}fragment B on Query{...A}",
		"{...A ...B}fragment A on Query{__typename}fragment B on Query{__typename}fragment A on Query{...B a:node(id:1){...A}}fragment B on Query{...A b:node(id:1){...B}}",
		"{...A}fragment A on Query{...B}fragment B on Query{__typename}fragment B on Query{...A ...B ...A}",
	}
}

// TestCyclesOfSecondDefinitions checks that the guard and validation end in few steps if a second definition of a fragment is part
// of a cycle. Validation must refuse the second definition.
func TestCyclesOfSecondDefinitions(t *testing.T) {
	g := newGuard(t)
	for _, text := range cyclesOfSecondDefinitions() {
		_, steps := countAllocations(func() {
			doc, err := g.Document(text)
			if err != nil {
				t.Fatalf("%s\n %v", text, err)
			}
			if errs := validator.ValidateWithRules(schema(), doc, nil); !strings.Contains(errs.Error(), "There can be only one fragment named") {
				t.Errorf("%s\n validation returned %v, want an error about the second fragment with the same name", text, errs)
			}
		})
		if steps > 10_000 {
			t.Errorf("%s\n took %d allocations, want at most 10,000", text, steps)
		}
	}
}

// hostileDocuments returns documents that must be refused before validation, and the rule that must refuse each document.
func hostileDocuments() map[string]struct{ text, rule string } {
	const deep = 10_000
	doubling := func(n int, between string) string {
		return "{...F0}" + repeat(n, func(i int) string {
			return fmt.Sprintf("fragment F%d on Query{%s}", i, strings.ReplaceAll(between, "NEXT", fmt.Sprint("...F", i+1)))
		}) + fmt.Sprintf("fragment F%d on Query{__typename}", n)
	}
	return map[string]struct{ text, rule string }{
		"alias bomb":               {"{" + repeat(250, numbered("a%d:user{id}")) + "}", RuleTokens},
		"alias bomb of 10,000":     {"{" + repeat(10_000, numbered("a%d:__typename ")) + "}", RuleDocumentBytes},
		"aliases in a fragment":    {"{" + repeat(40, numbered("a%d:user(address:1){...F}")) + "}fragment F on User{" + repeat(40, numbered("b%d:id ")) + "}", RuleSelections},
		"26 doubling fragments":    {doubling(26, "NEXT NEXT"), RuleSelections},
		"26 doubling field pairs":  {doubling(26, "a{NEXT}b{NEXT}"), RuleSelections},
		"49 tenfold fragments":     {doubling(49, strings.Repeat("NEXT ", 10)), RuleSelections},
		"400 fragments":            {doubling(400, "NEXT"), RuleTokens},
		"60 fragments":             {doubling(60, "NEXT"), RuleFragments},
		"50,000 repeated fields":   {"{" + strings.Repeat("a ", 50_000) + "}", RuleDocumentBytes},
		"15,000 repeated fields":   {"{" + strings.Repeat("a ", 15_000) + "}", RuleTokens},
		"900 repeated fields":      {"{" + strings.Repeat("a ", 900) + "}", RuleRepeats},
		"repeats in merged fields": {"{" + strings.Repeat("a{"+strings.Repeat("b{c} ", 20)+"}", 10) + "}", RuleRepeats},
		"a tree of repeats":        {repeatedTree(7), RuleRepeats},
		"deep fields":              {strings.Repeat("{a", deep) + strings.Repeat("}", deep), RuleTokens},
		"deep fields, not closed":  {strings.Repeat("{a", deep), RuleTokens},
		"deep lists":               {"{a(b:" + strings.Repeat("[", deep) + strings.Repeat("]", deep) + ")}", RuleTokens},
		"deep lists, not closed":   {"{a(b:" + strings.Repeat("[", deep), RuleTokens},
		"deep objects":             {"{a(b:" + strings.Repeat("{c:", deep) + "1" + strings.Repeat("}", deep) + ")}", RuleTokens},
		"deep inline fragments":    {strings.Repeat("{...", deep) + "{a" + strings.Repeat("}", deep+1), RuleTokens},
		"deep types":               {"query($v:" + strings.Repeat("[", deep) + "I" + strings.Repeat("]", deep) + "){a}", RuleTokens},
		"500 deep fields":          {strings.Repeat("{a", 500) + strings.Repeat("}", 500), RuleDepth},
		"a chain of fragments":     {"{...F0}" + repeat(40, func(i int) string { return fmt.Sprintf("fragment F%d on Q{a{b{c ...F%d}}}", i, i+1) }), RuleDepth},
		"huge string":              {`{a(b:"` + strings.Repeat("x", 10<<20) + `")}`, RuleDocumentBytes},
		"huge block string":        {`{a(b:"""` + strings.Repeat("\n ", 5<<20) + `""")}`, RuleDocumentBytes},
		"unterminated string":      {`{a(b:"` + strings.Repeat("x", 60_000), RuleSyntax},
		"unterminated block text":  {`{a(b:"""` + strings.Repeat("\n", 60_000), RuleSyntax},
		"a string as a field":      {`{"` + strings.Repeat("x", 60_000) + `"}`, RuleSyntax},
		"quotes":                   {strings.Repeat(`"`, 60_000), RuleSyntax},
		"huge number":              {"{" + strings.Repeat("9", 60_000) + "}", RuleSyntax},
		"huge name":                {"{" + strings.Repeat("a", 60_000) + "}", RuleNameBytes},
		"10 MB of spaces":          {strings.Repeat(" ", 10<<20), RuleDocumentBytes},
		"10 MB of comments":        {strings.Repeat("#\n", 5<<20), RuleDocumentBytes},
		"30,000 comments":          {strings.Repeat("#\n", 30_000), RuleTokens},
		"only a long comment":      {"# " + strings.Repeat("x", 60_000), RuleSyntax},
		"empty":                    {"", RuleSyntax},
		"spaces":                   {strings.Repeat(" ,\n\ufeff", 100), RuleSyntax},
		"only a fragment":          {"fragment f on Query{a}", RuleSyntax},
		"invalid UTF-8":            {"{a(b:\"\xff\xfe\")}", RuleSyntax},
		"invalid UTF-8 at the end": {"{a}#\xc3", RuleSyntax},
		"half a surrogate":         {"{a(b:\"\xed\xa0\x80\")}", RuleSyntax},
		"a full-width letter":      {"{ｔoken}", RuleSyntax},
		"null byte":                {"{a}\x00", RuleSyntax},
		"not GraphQL":              {"SELECT * FROM users; --", RuleSyntax},
		"a type definition":        {"type Query{a:Int}", RuleSyntax},
		"20,000 directives":        {"{a" + strings.Repeat("@d", 20_000) + "}", RuleTokens},
		"1,000 directives":         {"{a" + strings.Repeat("@d", 1000) + "}", RuleTokens},
		"1,500 ids":                {"{a(b:[" + strings.Repeat("1,", 1500) + "])}", RuleTokens},
		"200 operations":           {repeat(200, numbered("query q%d{a}")), RuleOperations},
	}
}

// repeatedTree returns a tree of selections that contains every field twice. Validation compares the two fields at every level.
func repeatedTree(depth int) string {
	if depth == 0 {
		return "{a}"
	}
	return "{" + strings.Repeat("a"+repeatedTree(depth-1), 2) + "}"
}

// TestHostileDocuments checks that refusing a document needs little memory and few allocations. The number of allocations is an
// estimate of the number of steps.
func TestHostileDocuments(t *testing.T) {
	g := newGuard(t)
	for name, test := range hostileDocuments() {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes, mallocs := countAllocations(func() { _, err = g.Document(test.text) })
			if Rule(err) != test.rule {
				t.Errorf("Document returned %v (rule %q), want the rule %q", err, Rule(err), test.rule)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes, want at most 1,000", len(err.Error()))
			}
			if bytes > 4<<20 || mallocs > 40_000 {
				t.Errorf("Document allocated %d bytes in %d allocations, want at most %d bytes in 40,000 allocations", bytes, mallocs, 4<<20)
			}
		})
	}
}

// countAllocations returns the number of bytes that f allocates, and the number of allocations.
func countAllocations(f func()) (bytes, mallocs uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

// TestDepthAlone checks that the limit of depth alone refuses 10,000 levels, before the stack overflows.
func TestDepthAlone(t *testing.T) {
	const huge = 1 << 30
	g := newGuard(t, func(l *Limits) { l.Tokens, l.DocumentBytes, l.Selections, l.Fragments = huge, huge, huge, huge })
	for name, test := range hostileDocuments() {
		if strings.HasPrefix(name, "deep") && !strings.HasSuffix(name, "not closed") {
			if _, err := g.Document(test.text); Rule(err) != RuleDepth {
				t.Errorf("%s: error %v, want the rule %s", name, err, RuleDepth)
			}
		}
	}
	chain := "{...F0}" + repeat(10_000, func(i int) string { return fmt.Sprintf("fragment F%d on Q{a{...F%d}}", i, i+1) })
	if _, err := g.Document(chain); Rule(err) != RuleDepth {
		t.Errorf("a chain of 10,000 fragments: error %v, want the rule %s", err, RuleDepth)
	}
}

// TestSyntaxErrors checks that syntax errors have a location and a limited length.
func TestSyntaxErrors(t *testing.T) {
	g := newGuard(t)
	_, err := g.Document("{\n  a(b: )\n}")
	var located *gqlerror.Error
	var known *market.Error
	if !errors.As(err, &located) || len(located.Locations) != 1 || located.Locations[0] != (gqlerror.Location{Line: 2, Column: 8}) || located.Message != "Unexpected )" {
		t.Errorf("got the error %#v, want \"Unexpected )\" at line 2, column 8", err)
	}
	if !errors.As(err, &known) || known.Code != market.CodeParseFailed || known.Message != located.Message || located.Extensions["code"] != "GRAPHQL_PARSE_FAILED" {
		t.Errorf("the error %#v does not wrap a market.Error with the same message and the code %s", err, market.CodeParseFailed)
	}
	_, err = g.Document(`{"` + strings.Repeat("ä", 1000) + `"}`)
	if !errors.As(err, &known) || len(known.Message) > maxSyntaxError+len("…") || strings.ContainsRune(known.Message, '\ufffd') {
		t.Errorf("the message %q has %d bytes; want at most %d bytes of valid UTF-8", known.Message, len(known.Message), maxSyntaxError+len("…"))
	}
}

// typicalDocuments returns the introspection queries of tools and the examples, by file name.
func typicalDocuments(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	introspection, err := filepath.Glob("testdata/introspection-*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 7 || len(introspection) < 2 {
		t.Fatalf("found the examples %q and the introspection queries %q, want at least 7 and 2", files, introspection)
	}
	texts := map[string]string{}
	for _, file := range append(files, introspection...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

func TestNewRefusesLimitsOfZero(t *testing.T) {
	limits := Default()
	limits.Repeats = 0
	if _, err := New(limits, schema()); err == nil || !strings.Contains(err.Error(), "the limit Repeats is 0") {
		t.Errorf("New with the limit Repeats of 0 returned the error %v", err)
	}
	if _, err := New(Limits{}, schema()); err == nil {
		t.Error("New accepted limits that are all 0")
	}
}

func TestRuleOfOtherErrors(t *testing.T) {
	for _, err := range []error{nil, errors.New("x"), market.Errorf(market.CodeBadUserInput, "x"), &gqlerror.Error{}} {
		if r := Rule(err); r != "" {
			t.Errorf("Rule(%v) is %q, want none", err, r)
		}
	}
	if r := Rule(fmt.Errorf("wrapped: %w", refuse(RuleDepth, "x"))); r != RuleDepth {
		t.Errorf("the rule of a wrapped error is %q, want %q", r, RuleDepth)
	}
}
