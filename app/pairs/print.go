package pairs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

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
	var row table.Row
	var columns []table.ColumnConfig
	for i, l := range legs {
		row = append(row, visible(l.text()))
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
		return l.Venue + ": " + l.Problem()
	}
	head := l.Venue + ": " + l.Question
	if l.GroupItemTitle != "" {
		head += "\nChoice: " + l.GroupItemTitle
	}
	if !l.EndsAt.IsZero() {
		head += "\nEnds: " + l.EndsAt.UTC().Format("2006-01-02 15:04 MST")
	}
	for _, o := range l.Outcomes {
		head += fmt.Sprintf("\n%s: %s", o.Label, o.TokenID)
	}
	return head + "\n\n" + cmp.Or(l.Description, l.Problem())
}

// visible returns a text without characters that a terminal would not show as they are.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}

var idGap = regexp.MustCompile(`[^a-z0-9]+`)

// Entry returns the entry of two legs for the questions file. Its match is empty, so the file is invalid until a person has decided.
// Entries of one output have different numbers.
func Entry(number int, now time.Time, a, b Leg) string {
	slug := idGap.ReplaceAllString(strings.ToLower(a.Question+" "+a.GroupItemTitle), "-")
	q := questions.Question{ID: fmt.Sprintf("%d-%.50s", number, slug), Title: visible(a.Question), CheckedAt: market.DateOf(now)}
	for _, l := range []Leg{a, b} {
		q.Legs = append(q.Legs, questions.Leg{Token: l.Token, RulesSHA256: l.Hash()})
	}
	entry, _ := json.Marshal(q, dates, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	return string(entry) + "\n"
}
