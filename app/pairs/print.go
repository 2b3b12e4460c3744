package pairs

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

// Leg is what a person reads of one leg of a question. It has either the hash of the rules text, or a problem: why there is no text.
// Market is nil if it could not be read, and if the venue does not know the token.
type Leg struct {
	Venue string
	*market.Market
	Hash, Problem string
}

// NewLeg returns a leg with the result of a read.
func NewLeg(venue string, m *market.Market, err error) Leg {
	l := Leg{Venue: venue, Market: m}
	switch {
	case err != nil:
		l.Problem = "it could not be read: " + err.Error()
	case m == nil:
		l.Problem = "the venue does not know the token"
	case m.Description == "":
		l.Problem = "the venue gives no rules text"
	default:
		l.Hash = questions.RulesHash(m.Description)
	}
	return l
}

// Text returns the titles, the ends, the tokens and the whole rules texts of a question side by side. Its lines have at most width
// characters, or 20 for each leg if that is more. legs has a leg for each token.
func Text(width int, q *questions.Question, legs map[string]Leg) string {
	const gap = " | "
	column := max((width+len(gap))/len(q.Legs)-len(gap), 20)
	var row table.Row
	var columns []table.ColumnConfig
	for i, l := range q.Legs {
		row = append(row, visible(legs[l.Token].text()))
		columns = append(columns, table.ColumnConfig{Number: i + 1, WidthMin: column, WidthMax: column, WidthMaxEnforcer: wrap})
	}
	t := table.NewWriter()
	t.SetStyle(table.Style{Box: table.BoxStyle{MiddleVertical: gap}, Options: table.Options{SeparateColumns: true}})
	t.SetColumnConfigs(columns)
	t.SuppressTrailingSpaces()
	t.AppendRow(row)
	return t.Render() + "\n\n"
}

// wrap divides each line of a text. text.WrapSoft alone joins the lines of a paragraph.
func wrap(long string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(long, "\n") {
		lines = append(lines, text.WrapSoft(line, width))
	}
	return strings.Join(lines, "\n")
}

// text returns the text of a column.
func (l Leg) text() string {
	if l.Market == nil {
		return l.Venue + ": " + l.Problem
	}
	head := l.Venue + ": " + l.Question + "\n" + l.GroupItemTitle
	if !l.EndsAt.IsZero() {
		head += "\nEnds: " + l.EndsAt.UTC().Format("2006-01-02 15:04 MST")
	}
	for _, o := range l.Outcomes {
		head += fmt.Sprintf("\n%s: %s", o.Label, o.TokenID)
	}
	return head + "\n\n" + cmp.Or(l.Description, l.Problem)
}

// visible returns a text with spaces for characters that a terminal would not show as they are.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}
