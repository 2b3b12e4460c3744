package pairs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

// Leg is what a person reads of one leg of a question. Market is nil with Err, and if the venue does not know the token.
type Leg struct {
	Venue, Token string
	*market.Market
	Err error
}

// Problem says why there is no rules text. It is empty if there is one.
func (l Leg) Problem() string {
	switch {
	case l.Err != nil:
		return "it could not be read: " + l.Err.Error()
	case l.Market == nil:
		return "the venue does not know the token"
	case l.Description == "":
		return "the venue gives no rules text"
	}
	return ""
}

// Hash returns the RulesHash of the rules text, or "" without one.
func (l Leg) Hash() string {
	if l.Problem() != "" {
		return ""
	}
	return questions.RulesHash(l.Description)
}

// Text returns the titles, the ends, the tokens and the whole rules texts of legs side by side. Its lines have at most width
// characters, or 20 for each leg if that is more.
func Text(width int, legs ...Leg) string {
	const gap = " | "
	column := max((width+len(gap))/len(legs)-len(gap), 20)
	var columns [][]string
	rows := 0
	for _, l := range legs {
		lines := wrap(l.text(), column)
		columns, rows = append(columns, lines), max(rows, len(lines))
	}
	var b strings.Builder
	for row := range rows {
		line := ""
		for _, lines := range columns {
			cell := ""
			if row < len(lines) {
				cell = lines[row]
			}
			line += fmt.Sprintf("%-*s%s", column, cell, gap)
		}
		b.WriteString(strings.TrimRight(line, " |") + "\n")
	}
	return b.String() + "\n"
}

// text returns the text of a column.
func (l Leg) text() string {
	if l.Market == nil {
		return l.Venue + ": " + l.Problem()
	}
	text := l.Venue + ": " + l.Question
	if l.GroupItemTitle != "" {
		text += "\nChoice: " + l.GroupItemTitle
	}
	if !l.EndsAt.IsZero() {
		text += "\nEnds: " + l.EndsAt.UTC().Format("2006-01-02 15:04 MST")
	}
	for _, o := range l.Outcomes {
		text += fmt.Sprintf("\n%s: %s", o.Label, o.TokenID)
	}
	return text + "\n\n" + cmp.Or(l.Description, l.Problem())
}

// wrap divides a text into lines. A character that a terminal would not show as it is becomes U+FFFD.
func wrap(text string, width int) (lines []string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		rest := []rune(visible(strings.Join(strings.Fields(paragraph), " ")))
		for len(rest) > width {
			at := width
			for at > 0 && rest[at] != ' ' {
				at--
			}
			if at == 0 { // a long word
				at = width
			}
			lines, rest = append(lines, string(rest[:at])), []rune(strings.TrimPrefix(string(rest[at:]), " "))
		}
		lines = append(lines, string(rest))
	}
	return lines
}

func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

const entry = `{
  "id": %q,
  "title": %q,
  "match": null, "differences": [],
  "checkedAt": "%s", "checkedBy": "",
  "legs": [
    { "token": %q, "rulesSha256": %q },
    { "token": %q, "rulesSha256": %q }
  ]
}
`

// Entry returns the entry of two legs for the questions file. Its match is null, so the file is invalid until a person has decided.
// ids has the ids of other entries, and gets the new one.
func Entry(a, b Leg, now time.Time, ids map[string]bool) string {
	words := strings.FieldsFunc(strings.ToLower(a.Question+" "+a.GroupItemTitle), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	base := strings.Join(words, "-")
	base = cmp.Or(strings.TrimRight(base[:min(len(base), 60)], "-"), "question")
	id := base
	for n := 2; ids[id]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	ids[id] = true
	return fmt.Sprintf(entry, id, visible(a.Question), market.DateOf(now), a.Token, a.Hash(), b.Token, b.Hash())
}
