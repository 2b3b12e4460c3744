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

// Leg is what a person reads of one leg of a question.
type Leg struct {
	Venue string
	*market.Market
}

// leastColumn is the least width of a column. Texts that do not fit side by side stand one under the other.
const leastColumn = 45

// Text returns the titles, the ends, the tokens and the whole rules texts of legs side by side, in lines of at most width characters.
func Text(width int, legs ...Leg) string {
	const gap = " | "
	column := (width - len(gap)*(len(legs)-1)) / max(len(legs), 1)
	var b strings.Builder
	if column < leastColumn {
		for _, l := range legs {
			b.WriteString(strings.Join(l.lines(max(width, 1)), "\n") + "\n\n")
		}
		return b.String()
	}
	var columns [][]string
	rows := 0
	for _, l := range legs {
		lines := l.lines(column)
		columns, rows = append(columns, lines), max(rows, len(lines))
	}
	for row := range rows {
		line := ""
		for i, lines := range columns {
			if i > 0 {
				line += gap
			}
			cell := ""
			if row < len(lines) {
				cell = lines[row]
			}
			line += fmt.Sprintf("%-*s", column, cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String() + "\n"
}

// lines returns the text of a column.
func (l Leg) lines(width int) []string {
	end := "unknown"
	if !l.EndsAt.IsZero() {
		end = l.EndsAt.UTC().Format("2006-01-02 15:04 MST")
	}
	text := fmt.Sprintf("%s: %s", l.Venue, l.Question)
	if l.GroupItemTitle != "" {
		text += "\nChoice: " + l.GroupItemTitle
	}
	text += "\nEnds: " + end
	for _, o := range l.Outcomes {
		text += fmt.Sprintf("\n%s: %s", o.Label, o.TokenID)
	}
	return wrap(text+"\n\n"+cmp.Or(l.Description, "(The venue gives no rules.)"), width)
}

// wrap divides a text into lines. A character that a terminal would not show as it is becomes U+FFFD.
func wrap(text string, width int) (lines []string) {
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		line := []rune(nil)
		for word := range strings.FieldsSeq(paragraph) {
			next := []rune(visible(word))
			if len(line) > 0 && len(line)+1+len(next) > width {
				lines, line = append(lines, string(line)), nil
			}
			if len(line) > 0 {
				line = append(line, ' ')
			}
			for line = append(line, next...); len(line) > width; line = line[width:] {
				lines = append(lines, string(line[:width]))
			}
		}
		lines = append(lines, string(line))
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

// Skeleton returns the entry of a candidate for the questions file as JSON. Its match is null, so the file is invalid until a person
// has decided. ids counts the ids of entries, which differ.
func (c Candidate) Skeleton(now time.Time, ids map[string]int) string {
	e := Entry{ID: idOf(c[0].Question + " " + c[0].GroupItemTitle), Title: visible(c[0].Question), Differences: []string{}, CheckedAt: market.DateOf(now).String()}
	if ids[e.ID]++; ids[e.ID] > 1 {
		e.ID += "-" + strconv.Itoa(ids[e.ID])
	}
	for i, token := range c.Tokens() {
		e.Legs = append(e.Legs, EntryLeg{Token: token, RulesSHA256: questions.RulesHash(c[i].Description)})
	}
	return string(encode(e))
}

// Tokens returns the first outcome of the first market, and of the second market the outcome of the same name, or else the first.
func (c Candidate) Tokens() []string {
	first, second := &c[0].Outcomes[0], &c[1].Outcomes[0]
	if same := c[1].OutcomeByLabel(first.Label); same != nil && same.TokenID != "" {
		second = same
	}
	return []string{first.TokenID, second.TokenID}
}

// idOf returns a text in the form of the id of a question.
func idOf(text string) string {
	id := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }), "-")
	return cmp.Or(strings.TrimRight(id[:min(len(id), 60)], "-"), "question")
}
