package pairs

import (
	"cmp"
	"fmt"
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
	// A rare word is in at most rareCount titles, or in at most one title in rarePart. Other words do not count.
	rareCount, rarePart = 100, 50
)

// title has the words of a market's title, and those of them that are numbers or months.
type title struct {
	*market.Market
	words, numbers []string
	weight         float64 // of the rare words
	best           float64 // the greatest likeness to a title of the other venue
}

type pair struct {
	a, b     *title
	likeness float64
}

// Candidates returns questions of two venues' markets that may ask the same, and that no known question has. Their titles share rare
// words, one has all numbers and months of the other, and they end at about the same time. The most similar titles are first.
func Candidates(a, b []*market.Market, known *questions.Set) (out []*questions.Question) {
	count := make(map[string]int) // of titles with a word
	ofA, ofB := titles(a, count), titles(b, count)
	weigh := func(word string) float64 {
		if count[word] > max(rareCount, (len(a)+len(b))/rarePart) {
			return 0
		}
		return math.Log(float64(1+len(a)+len(b)) / float64(count[word]))
	}
	withWord := make(map[string][]*title) // of b
	for _, y := range ofB {
		for _, word := range y.words {
			if weight := weigh(word); weight > 0 {
				y.weight += weight
				withWord[word] = append(withWord[word], y)
			}
		}
	}
	var all []pair
	for _, x := range ofA {
		shared := make(map[*title]float64) // the weight of the words that both have
		for _, word := range x.words {
			weight := weigh(word)
			x.weight += weight
			for _, y := range withWord[word] {
				shared[y] += weight
			}
		}
		for y, weight := range shared {
			likeness := 2 * weight / (x.weight + y.weight)
			if likeness >= max(least, near*x.best, near*y.best) && fit(x, y) {
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
			out = append(out, p.question(len(out)+1))
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

// question returns a question of the first outcome of the first market, and of the second market the outcome of the same name, or else
// the first. Questions of one list have different numbers.
func (p pair) question(number int) *questions.Question {
	first, second := &p.a.Outcomes[0], &p.b.Outcomes[0]
	if same := p.b.OutcomeByLabel(first.Label); same != nil && same.TokenID != "" {
		second = same
	}
	name := idGap.ReplaceAllString(strings.ToLower(p.a.Question+" "+p.a.GroupItemTitle), "-")
	return &questions.Question{
		ID: fmt.Sprintf("%d-%.50s", number, name), Title: visible(p.a.Question), Legs: []questions.Leg{{Token: first.TokenID}, {Token: second.TokenID}},
	}
}

// fit reports whether the ends of two markets agree, and one has all numbers and months of the other.
func fit(x, y *title) bool {
	apart := x.EndsAt.Sub(y.EndsAt).Abs()
	lacks := func(t, other *title) bool {
		return slices.ContainsFunc(other.numbers, func(n string) bool { return !slices.Contains(t.numbers, n) })
	}
	return (apart <= endsWithin || x.EndsAt.IsZero() || y.EndsAt.IsZero()) && !(lacks(x, y) && lacks(y, x))
}

var (
	idGap     = regexp.MustCompile(`[^a-z0-9]+`)
	wordForm  = regexp.MustCompile(`[0-9]+(?:[.,][0-9]+)*(?:[km]\b)?|\pL+`)
	monthForm = regexp.MustCompile(`^(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)$`)
	thousands = strings.NewReplacer(",", "", "k", "000", "m", "000000")
)

// titles returns the titles of markets, and adds their words to count. It skips markets without tokens. Words have one spelling:
// 100k and 100,000 are 100000, December is dec, and plurals lose their last letter.
func titles(markets []*market.Market, count map[string]int) (out []*title) {
	for _, m := range markets {
		if len(m.Outcomes) == 0 || m.Outcomes[0].TokenID == "" {
			continue
		}
		t := &title{Market: m}
		for _, word := range wordForm.FindAllString(strings.ToLower(m.Question+" "+m.GroupItemTitle), -1) {
			switch {
			case word[0] >= '0' && word[0] <= '9':
				word = thousands.Replace(word)
				t.numbers = append(t.numbers, word)
			case monthForm.MatchString(word):
				word = word[:3]
				t.numbers = append(t.numbers, word)
			case len(word) > 3:
				word = strings.TrimSuffix(word, "s")
			}
			if !slices.Contains(t.words, word) {
				t.words = append(t.words, word)
				count[word]++
			}
		}
		out = append(out, t)
	}
	return out
}
