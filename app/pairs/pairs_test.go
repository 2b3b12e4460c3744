package pairs

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

var end = time.Date(2026, 12, 31, 20, 0, 0, 0, time.UTC)

func named(id, question, choice string, days int) *market.Market {
	return &market.Market{
		MarketID: id, Question: question, GroupItemTitle: choice, EndsAt: end.AddDate(0, 0, days),
		Outcomes: []market.Outcome{{TokenID: id + ":yes", Label: "Yes"}, {TokenID: id + ":no", Label: "No"}},
	}
}

// TestCandidates checks which titles make a pair: they share rare words, have the same numbers and months, and end at about the same
// time.
func TestCandidates(t *testing.T) {
	a := []*market.Market{
		named("1", "Fed decreases interest rates by 25 bps after December 2026 meeting?", "25 bps decrease", 0),
		named("2", "Fed decreases interest rates by 50+ bps after December 2026 meeting?", "50+ bps decrease", 0),
		named("3", "Will Bitcoin reach $150k in December?", "", 0),
		named("4", "Will Gavin Newsom win the 2028 Democratic presidential nomination?", "Gavin Newsom", 100),
		named("5", "Will Thailand enter a recession?", "", 0),
		{MarketID: "6", Question: "Will Thailand enter a recession?", EndsAt: end},
	}
	b := []*market.Market{
		named("A", "Will the Federal Reserve cut rates by 25bps at their December 2026 meeting?", "Cut 25bps", 7),
		named("B", "Will the Federal Reserve cut rates by 75bps at their December 2026 meeting?", "Cut 75bps", 7),
		named("C", "Will Bitcoin be $150,000 or above on Dec 31, 2026?", "", 0),
		named("D", "Will Bitcoin be $151,000 or above on Dec 31, 2026?", "", 0),
		named("E", "Will Bitcoin be $150,000 or above on Nov 30, 2026?", "", 0),
		named("F", "Who will be the Democratic presidential nominee in 2028?", "Gavin Newsom", 100),
		named("G", "Who will be the Democratic presidential nominee in 2028?", "Josh Shapiro", 100),
		named("H", "Will Thailand enter a recession?", "", 8),
	}
	var got []string
	for _, c := range Candidates(a, b, &questions.Set{}) {
		got = append(got, tokens(c))
	}
	slices.Sort(got)
	if want := []string{"1:yes A:yes", "3:yes C:yes", "4:yes F:yes"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	b[7].EndsAt = time.Time{} // unknown
	known := questions.NewSet(questions.Question{Legs: []questions.Leg{{Token: "1:no"}, {Token: "A:yes"}}})
	got = nil
	for _, c := range Candidates(a, b, known) {
		got = append(got, tokens(c))
	}
	if !slices.Contains(got, "5:yes H:yes") || slices.Contains(got, "1:yes A:yes") {
		t.Errorf("got %q, want a pair with an unknown end, and none that is known", got)
	}
}

func tokens(q *questions.Question) string { return q.Legs[0].Token + " " + q.Legs[1].Token }

// TestText checks that the text has every word of both rules texts side by side, in lines that fit, without characters that change a
// terminal.
func TestText(t *testing.T) {
	rules := strings.Repeat("This market resolves by what the office publishes. ", 20) + strings.Repeat("x", 200) + "\r\n\r\nLast \x1b[2J\u202eparagraph."
	long, short := named("1", "A?", "", 0), named("kalshi:2", "B?", "Choice", 0)
	long.Description, short.Description = rules, "Short."
	q := &questions.Question{Legs: []questions.Leg{{Token: "1"}, {Token: "2"}}}
	for width, widest := range map[int]int{1: 43, 43: 43, 80: 80, 160: 160} {
		text := Text(width, q, map[string]Leg{"1": NewLeg("one", long, nil), "2": NewLeg("two", short, nil)})
		first := ""
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widest {
				t.Errorf("at the width %d, a line has %d characters: %s", width, n, line)
			}
			cell, _, _ := strings.Cut(line, " | ")
			first += strings.TrimSpace(cell) + " "
		}
		if strings.Count(first, "office") != 20 || strings.Count(text, "x") != 200 || !strings.Contains(first, "Last  [2J paragraph.") || !strings.Contains(text, " | Short.") {
			t.Errorf("at the width %d, the text is not whole: %s", width, text)
		}
	}
	if text := Text(80, q, map[string]Leg{"1": NewLeg("one", nil, nil), "2": NewLeg("two", nil, io.EOF)}); !strings.Contains(text, "does not know the token") || !strings.Contains(text, "two: it could not be read: EOF") {
		t.Errorf("without markets: %s", text)
	}
}
