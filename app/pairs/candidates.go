package pairs

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

const (
	// endsWithin is the greatest time between the ends of the two markets.
	endsWithin = 7 * 24 * time.Hour
	// least is the least likeness of two titles. A pair also has at least the part near of the greatest likeness of both titles.
	least, near = 0.3, 0.85
	// A rare word is in at most rareCount titles, or in at most one title in rarePart.
	rareCount, rarePart = 100, 50
)

// title has the words of a market's title.
type title struct {
	*market.Market
	words map[string]bool
	best  float64 // the greatest likeness to a title of the other venue
}

type pair struct {
	a, b     *title
	likeness float64
}

// Candidates returns the tokens of markets of two venues that may ask the same question, and that no known question has. Their titles
// share rare words, one has all numbers and months of the other, and they end at about the same time. The most similar titles are first.
func Candidates(a, b []*market.Market, known *questions.Set) (out [][2]string) {
	count := make(map[string]int) // of titles with a word
	ofA, ofB := titles(a, count), titles(b, count)
	weigh := func(word string) float64 { return math.Log(float64(1+len(a)+len(b)) / float64(count[word])) }
	withWord := make(map[string][]*title)
	for _, t := range ofB {
		for word := range t.words {
			if count[word] <= max(rareCount, (len(a)+len(b))/rarePart) {
				withWord[word] = append(withWord[word], t)
			}
		}
	}
	var all []pair
	for _, x := range ofA {
		others := make(map[*title]bool)
		for word := range x.words {
			for _, y := range withWord[word] {
				others[y] = true
			}
		}
		for y := range others {
			if !fit(x, y) {
				continue
			}
			if likeness := x.likeness(y, weigh); likeness >= max(least, near*x.best, near*y.best) {
				x.best, y.best = max(x.best, likeness), max(y.best, likeness)
				all = append(all, pair{x, y, likeness})
			}
		}
	}
	slices.SortFunc(all, func(f, g pair) int {
		return cmp.Or(cmp.Compare(g.likeness, f.likeness), cmp.Compare(f.a.MarketID, g.a.MarketID), cmp.Compare(f.b.MarketID, g.b.MarketID))
	})
	for _, p := range all {
		if p.likeness >= near*max(p.a.best, p.b.best) && !p.isIn(known) {
			out = append(out, p.tokens())
		}
	}
	return out
}

// isIn reports whether a question of the set has tokens of both markets.
func (p pair) isIn(set *questions.Set) bool {
	for _, o := range p.a.Outcomes {
		for _, q := range set.OfToken(o.TokenID) {
			if slices.ContainsFunc(q.Legs, func(l questions.Leg) bool { return p.b.OutcomeByToken(l.Token) != nil }) {
				return true
			}
		}
	}
	return false
}

// tokens returns the first outcome of the first market, and of the second market the outcome of the same name, or else the first.
func (p pair) tokens() [2]string {
	first, second := &p.a.Outcomes[0], &p.b.Outcomes[0]
	if same := p.b.OutcomeByLabel(first.Label); same != nil && same.TokenID != "" {
		second = same
	}
	return [2]string{first.TokenID, second.TokenID}
}

// likeness returns the part of the weight of two titles that their common words have.
func (t *title) likeness(other *title, weigh func(word string) float64) float64 {
	common, all := 0.0, 0.0
	for word := range t.words {
		all += weigh(word)
		if other.words[word] {
			common += 2 * weigh(word)
		}
	}
	for word := range other.words {
		all += weigh(word)
	}
	return math.Round(1e6*common/all) / 1e6 // sums of floats depend on the order of the words
}

// fit reports whether the ends of two markets agree, and one has all numbers and months of the other.
func fit(a, b *title) bool {
	apart := a.EndsAt.Sub(b.EndsAt).Abs()
	return (apart <= endsWithin || a.EndsAt.IsZero() || b.EndsAt.IsZero()) && (hasNumbers(a, b) || hasNumbers(b, a))
}

func hasNumbers(a, b *title) bool {
	for word := range b.words {
		if numberForm.MatchString(word) && !a.words[word] {
			return false
		}
	}
	return true
}

// titles returns the titles of markets, and adds their words to count. It skips markets without tokens.
func titles(markets []*market.Market, count map[string]int) (out []*title) {
	for _, m := range markets {
		if len(m.Outcomes) > 0 && m.Outcomes[0].TokenID != "" {
			t := &title{Market: m, words: wordsOf(m.Question + " " + m.GroupItemTitle)}
			for word := range t.words {
				count[word]++
			}
			out = append(out, t)
		}
	}
	return out
}

var (
	wordForm   = regexp.MustCompile(`[0-9]+(?:[.,][0-9]+)*(?:[km]\b)?|\pL+`)
	monthForm  = regexp.MustCompile(`^(?:january|february|march|april|june|july|august|sept|september|october|november|december)$`)
	numberForm = regexp.MustCompile(`^(?:[0-9].*|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)$`)
	thousands  = strings.NewReplacer(",", "", "k", "000", "m", "000000")
)

// wordsOf returns the words and numbers of a text in one spelling: without plurals, 100k and 100,000 as 100000, December as dec.
func wordsOf(text string) map[string]bool {
	words := make(map[string]bool)
	for _, word := range wordForm.FindAllString(strings.ToLower(text), -1) {
		switch {
		case word[0] >= '0' && word[0] <= '9':
			word = thousands.Replace(word)
		case monthForm.MatchString(word):
			word = word[:3]
		case len(word) > 3:
			word = strings.TrimSuffix(word, "s")
		}
		words[word] = true
	}
	return words
}
