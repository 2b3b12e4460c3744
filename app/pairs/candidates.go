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
	// rareCount is the greatest number of titles with a rare word. Other words do not count.
	rareCount = 200
)

// title has the words of a market's title, and those of them that are numbers or months.
type title struct {
	*market.Market
	words, numbers []string
}

type pair struct {
	a, b     *title
	likeness float64
}

// Candidates returns questions of two venues' markets that may ask the same, and that no known question has. Their titles share rare
// words, one has all numbers and months of the other, and they end at about the same time. The most similar titles are first.
func Candidates(a, b []*market.Market, known *questions.Set) (out []*questions.Question) {
	ofA, withA := titles(a)
	_, withB := titles(b)
	weigh := func(words ...string) (sum float64) {
		for _, word := range words {
			if count := len(withA[word]) + len(withB[word]); count <= rareCount {
				sum += math.Log(float64(1+len(a)+len(b)) / float64(count))
			}
		}
		return sum
	}
	var all []pair
	for _, x := range ofA {
		shared := make(map[*title]float64) // the weight of the words that both have
		for _, word := range x.words {
			if weight := weigh(word); weight > 0 {
				for _, y := range withB[word] {
					shared[y] += weight
				}
			}
		}
		for y, weight := range shared {
			if likeness := 2 * weight / (weigh(x.words...) + weigh(y.words...)); likeness >= least && fit(x, y) {
				all = append(all, pair{x, y, likeness})
			}
		}
	}
	slices.SortFunc(all, func(f, g pair) int {
		return cmp.Or(cmp.Compare(g.likeness, f.likeness), cmp.Compare(f.a.MarketID, g.a.MarketID), cmp.Compare(f.b.MarketID, g.b.MarketID))
	})
	best := make(map[*title]float64)
	for _, p := range all {
		best[p.a], best[p.b] = max(best[p.a], p.likeness), max(best[p.b], p.likeness)
		if p.likeness >= near*max(best[p.a], best[p.b]) && !p.isIn(known) {
			out = append(out, p.question(len(out)+1))
		}
	}
	return out
}

// isIn reports whether a question of the set has tokens of both markets.
func (p pair) isIn(known *questions.Set) bool {
	return slices.ContainsFunc(known.All(), func(q *questions.Question) bool {
		return slices.ContainsFunc(q.Legs, p.a.has) && slices.ContainsFunc(q.Legs, p.b.has)
	})
}

func (t *title) has(l questions.Leg) bool { return t.OutcomeByToken(l.Token) != nil }

// question returns a question of the first outcome of the first market, and of the second market the outcome of the same name, or else
// the first. Questions of one list have different numbers.
func (p pair) question(number int) *questions.Question {
	first, second := &p.a.Outcomes[0], &p.b.Outcomes[0]
	if same := p.b.OutcomeByLabel(first.Label); same != nil && same.TokenID != "" {
		second = same
	}
	return &questions.Question{
		ID: fmt.Sprintf("%d-%.50s", number, cmp.Or(p.a.Slug, p.a.MarketID)), Title: visible(p.a.Question),
		Legs: []questions.Leg{{Token: first.TokenID}, {Token: second.TokenID}},
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
	wordForm  = regexp.MustCompile(`[0-9]+(?:[.,][0-9]+)*(?:[km]\b)?|\pL+`)
	monthForm = regexp.MustCompile(`^(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)$`)
	thousands = strings.NewReplacer(",", "", "k", "000", "m", "000000")
)

// titles returns the titles of markets with tokens, and those with each word. Words have one spelling: 100k and 100,000 are 100000, and
// December is dec.
func titles(markets []*market.Market) (all []*title, with map[string][]*title) {
	with = make(map[string][]*title)
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
			}
			if !slices.Contains(t.words, word) {
				t.words, with[word] = append(t.words, word), append(with[word], t)
			}
		}
		all = append(all, t)
	}
	return all, with
}
