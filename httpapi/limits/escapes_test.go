package limits

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/market"
)

// firstArgument returns the first argument of a document's first field.
func firstArgument(doc *ast.QueryDocument) *ast.Value {
	return doc.Operations[0].SelectionSet[0].(*ast.Field).Arguments[0].Value
}

// TestEscapes checks that strings of a document are read as section 2.9.4 of the specification says.
func TestEscapes(t *testing.T) {
	g := newGuard(t)
	for literal, want := range map[string]string{
		`"\uD83D\uDE00"`: "😀", `"\ud83d\ude00!"`: "😀!", `"\u{1F600}"`: "😀", `"\u{01f600}\u{41}"`: "😀A", `"\u{0000000000041}"`: "A", `"\u{10FFFF}"`: "\U0010FFFF",
		`"é\u00e9\uD83D\uDE00\n\/\b"`: "éé😀\n/\b", `"\u{22}\u{5c}\u{A}\u{0}"`: "\"\\\n\x00", `"\\uD83D"`: `\uD83D`, `"\\\uD83D\uDE00"`: `\😀`, `"\"\uD83D\uDE00\""`: `"😀"`,
		`""`: "", `"#\u{41}"`: "#A", `"""\uD83D \u{41} "" \"""\u"""`: `\uD83D \u{41} "" """\u`, `"""\u{x}"""`: `\u{x}`, `"\u{FEFF}"`: "\ufeff", `"\uFFFD"`: "\ufffd",
	} {
		for _, around := range []string{"{ a(x: %) }", "#\\uD83D \"\n{ a(x: %, y: \"\\u{42}\") b(z: \"\"\"\\u \\\"\"\" \"\"\", w: \"\\u0041\") }"} {
			doc, err := g.Document(strings.ReplaceAll(around, "%", literal))
			if err != nil {
				t.Errorf("%s: got the error %v", literal, err)
				continue
			}
			if got := firstArgument(doc).Raw; got != want {
				t.Errorf("the string %s is read as %q, want %q", literal, got, want)
			}
		}
	}
}

// FuzzEscapes checks that a string is read as its text in which every character was escaped, as json.dumps of Python escapes it.
func FuzzEscapes(f *testing.F) {
	for _, text := range []string{"", "plain", "😀", "é\"\\\n😀\u2028", "\x00\x1f"} {
		f.Add(text)
	}
	g := newGuard(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 || !utf8.ValidString(text) {
			return
		}
		var units, points strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&units, `\u%04x`, unit)
		}
		for _, char := range text {
			fmt.Fprintf(&points, `\u{%x}`, char)
		}
		doc, err := g.Document(`{ a(x: "` + units.String() + `", y: "` + points.String() + `") b }`)
		if err != nil {
			t.Fatalf("%q: got the error %v", text, err)
		}
		for i, a := range doc.Operations[0].SelectionSet[0].(*ast.Field).Arguments {
			if a.Value.Raw != text {
				t.Errorf("argument %d is read as %q, want %q", i, a.Value.Raw, text)
			}
		}
	})
}

// TestPositionsAfterEscapes checks that escapes do not move the fields behind them.
func TestPositionsAfterEscapes(t *testing.T) {
	g := newGuard(t)
	for _, text := range []string{
		`{ a(x: "\uD83D\uDE00") b }`, `{ a(x: "\u{1F600}\u{41}\u{00042}", y: "\uD83D\uDE00") b }`, "{ a(x: \"\\u{1F600}\")\r\n  b }", "{ a(x: \"é\\u{A}\", y: [\"\\u{41}\"\"\\u{42}\"]) b }",
	} {
		doc, err := g.Document(text)
		if err != nil {
			t.Errorf("%s: got the error %v", text, err)
			continue
		}
		b := doc.Operations[0].SelectionSet[1].GetPosition()
		line, column := 1+strings.Count(text, "\n"), len([]rune(text[strings.LastIndexAny("\n"+text, "\n"):strings.LastIndex(text, "b")]))+1
		if b.Line != line || b.Column < column || b.Column > column+1 { // gqlparser counts the \n of \r\n as a column
			t.Errorf("%s: the field b is at %d:%d, want %d:%d", text, b.Line, b.Column, line, column)
		}
	}
}

// TestBadEscapes checks that an escape that is no Unicode scalar value is a syntax error with the place of the escape.
func TestBadEscapes(t *testing.T) {
	g := newGuard(t)
	for text, want := range map[string]string{
		`{ a(x: "\uD83D") }`:                     `1:9 the escape \uD83D in a string is no Unicode character`,
		"{\n# é\n é: a(x: \"é\\uDE00\\uD83D\")}": `3:12 the escape \uDE00 in a string is no Unicode character`,
		`{ a(x: "\uD83Dx\uDE00") }`:              `1:9 the escape \uD83Dx in a string is no Unicode character`,
		`{ a(x: "\uD83D\u0041") }`:               `1:9 the escape \uD83D in a string is no Unicode character`,
		`{ a(x: "\uD83D\u{DE00}") }`:             `1:9 the escape \uD83D in a string is no Unicode character`,
		`{ a(x: "\u{D83D}\u{DE00}") }`:           `1:9 the escape \u{D83D in a string is no Unicode character`,
		`{ a(x: "\u{110000}") }`:                 `1:9 the escape \u{110000 in a string is no Unicode character`,
		`{ a(x: "\u{}") }`:                       `1:9 the escape \u{ in a string is no Unicode character`,
		`{ a(x: "\u{+41}") }`:                    `1:9 the escape \u{+41 in a string is no Unicode character`,
		`{ a(x: "\u{41") }`:                      `1:9 the escape \u{41 in a string is no Unicode character`,
		`{ a(x: "\u{`:                            `1:9 the escape \u{ in a string is no Unicode character`,
		`{ a(x: "\u12") }`:                       `1:10 Unexpected <Invalid>`,
		`{ a(x: "\uD83`:                          `1:10 Unexpected <Invalid>`,
	} {
		_, err := g.Document(text)
		located, ok := errors.AsType[*gqlerror.Error](err)
		if !ok || market.CodeOf(err) != market.CodeParseFailed || Rule(err) != RuleSyntax {
			t.Errorf("%s: got the error %v, want %s", text, err, market.CodeParseFailed)
			continue
		}
		at := located.Locations[0]
		if got := strings.TrimPrefix(gqlerror.ErrorLocf("", at.Line, at.Column, "%s", located.Message).Error(), "input:"); got != strings.Replace(want, " ", ": ", 1) {
			t.Errorf("%s: got the error %s, want %s", text, got, want)
		}
	}
}
