package limits

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// plainEscapes returns a document from which gqlparser reads the strings that the specification reads from text (section 2.9.4).
// gqlparser reads each half of the escapes of a surrogate pair as U+FFFD, accepts one half alone, and refuses \u{…}; no issue of
// github.com/vektah/gqlparser reports this yet. So plainEscapes replaces these escapes by their characters. After the string it adds
// spaces, which GraphQL ignores, so that the rest of the line keeps its columns. An escape that is no character is a syntax error.
func plainEscapes(text string) (string, error) {
	if !strings.Contains(text, `\u`) {
		return text, nil
	}
	var out strings.Builder
	out.Grow(len(text))
	for i := 0; i < len(text); {
		rest, n := text[i:], 1
		switch {
		case rest[0] == '#':
			n = lineEnd(rest)
		case strings.HasPrefix(rest, `"""`):
			n = blockLength(rest)
		case rest[0] == '"':
			n, bad := appendPlain(&out, rest)
			if bad >= 0 {
				return "", badEscape(text, i+bad)
			}
			i += n
			continue
		}
		out.WriteString(rest[:n])
		i += n
	}
	if out.String() == text {
		return text, nil // so that the document has its text in memory once
	}
	return out.String(), nil
}

// lineEnd returns the index of the first line terminator in text, or the length of text.
func lineEnd(text string) int {
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		return end
	}
	return len(text)
}

// blockLength returns the length of the block string at the start of text. As in gqlparser, all quotes in a row belong to its end.
func blockLength(text string) int {
	for i := len(`"""`); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], `\"""`):
			i += len(`"""`)
		case strings.HasPrefix(text[i:], `"""`):
			return len(text) - len(strings.TrimLeft(text[i:], `"`))
		}
	}
	return len(text)
}

// appendPlain appends the string at the start of text with plain escapes, and returns its length in text. If the string has no end,
// appendPlain appends the rest of the line, which gqlparser refuses. bad is the index of an escape that is no character, or -1.
func appendPlain(out *strings.Builder, text string) (n, bad int) {
	from, saved := 0, 0 // text[:from] is appended and has saved fewer characters
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			out.WriteString(text[from : i+1])
			out.WriteString(strings.Repeat(" ", max(saved, 0)))
			return i + 1, -1
		case '\r', '\n':
			out.WriteString(text[from:i])
			return i, -1
		case '\\':
			char, size := unescape(text[i:])
			switch {
			case size < 0:
				return 0, i
			case size == 0:
				i++ // gqlparser reads this escape rightly
				continue
			}
			plain := escape(char)
			out.WriteString(text[from:i])
			out.WriteString(plain)
			saved += size - utf8.RuneCountInString(plain)
			from = i + size
			i = from - 1
		}
	}
	out.WriteString(text[from:])
	return len(text), -1
}

// unescape returns the character of the escape at the start of text, and the length of the escape. The length is 0 for an escape
// that gqlparser reads or refuses rightly, and -1 for an escape that is no Unicode scalar value.
func unescape(text string) (char rune, size int) {
	if digits, ok := strings.CutPrefix(text, `\u{`); ok {
		digits, _, ok = strings.Cut(digits, "}")
		n, err := strconv.ParseUint(digits, 16, 32)
		if !ok || err != nil || n > utf8.MaxRune || utf16.IsSurrogate(rune(n)) {
			return 0, -1
		}
		return rune(n), len(`\u{}`) + len(digits)
	}
	high := codeUnit(text)
	if !utf16.IsSurrogate(high) {
		return 0, 0
	}
	if char = utf16.DecodeRune(high, codeUnit(text[len(`\uD83D`):])); char == utf8.RuneError {
		return 0, -1
	}
	return char, len(`\uD83D\uDE00`)
}

// codeUnit returns the code unit of an escape of four digits at the start of text. It returns -1 for any other text.
func codeUnit(text string) rune {
	if len(text) < len(`\uD83D`) || text[:2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// escape returns a character in a form that a string may contain.
func escape(char rune) string {
	switch {
	case char == '"' || char == '\\':
		return `\` + string(char)
	case char < ' ':
		return fmt.Sprintf(`\u%04x`, char)
	default:
		return string(char)
	}
}

func badEscape(text string, at int) error {
	before := text[:at]
	line := 1 + strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexAny(before, "\r\n")+1:])
	shown := text[at:min(at+len(`\u{10FFFF}`), len(text))]
	if end := strings.IndexAny(shown[1:], "\\\"}\r\n"); end >= 0 {
		shown = shown[:end+1]
	}
	return syntaxError(fmt.Sprintf("the escape %s in a string is no Unicode character", strings.ToValidUTF8(shown, "")), []gqlerror.Location{{Line: line, Column: column}})
}
