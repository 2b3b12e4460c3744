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

// Candidate has two markets, one of each venue, that may ask the same question. Only a person who has read their rules can say so.
type Candidate [2]*market.Market

const (
	// endsWithin is the greatest time between the ends of the two markets.
	endsWithin = 7 * 24 * time.Hour
	// least is the least part of the weight of two titles that their common words have. A candidate also has at least the part near
	// of the most that any candidate with one of its markets has.
	least, near = 0.3, 0.85
	// A rare word is in at most rareCount titles, or in at most one title in rarePart.
	rareCount, rarePart = 100, 50
)

// title has the words of a market's title.
type title struct {
	*market.Market
	words map[string]bool
	// weight is the sum of the weights of the words, and best the greatest likeness to a title of the other venue.
	weight, best float64
}

// Candidates returns the pairs of markets of two venues whose titles share rare words, of which one has all numbers and months of the
// other, and which end at about the same time. The pairs with the greatest part of common words are first.
func Candidates(a, b []*market.Market) []Candidate {
	count := make(map[string]int) // of titles with a word
	sides := [2][]*title{titles(a, count), titles(b, count)}
	weigh := func(word string) float64 { return math.Log(float64(1+len(a)+len(b)) / float64(count[word])) }
	withWord := make(map[string][]*title)
	for side, list := range sides {
		for _, t := range list {
			for word := range t.words {
				t.weight += weigh(word)
				if side == 1 && count[word] <= max(rareCount, (len(a)+len(b))/rarePart) {
					withWord[word] = append(withWord[word], t)
				}
			}
		}
	}
	type found struct {
		a, b *title
		part float64
	}
	var all []found
	for _, x := range sides[0] {
		seen := make(map[*title]bool)
		for word := range x.words {
			for _, y := range withWord[word] {
				if seen[y] || !fit(x, y) {
					continue
				}
				seen[y] = true
				shared := 0.0
				for word := range x.words {
					if y.words[word] {
						shared += weigh(word)
					}
				}
				if part := 2 * shared / (x.weight + y.weight); part >= max(least, near*x.best, near*y.best) {
					x.best, y.best = max(x.best, part), max(y.best, part)
					all = append(all, found{x, y, part})
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(f found) bool { return f.part < near*max(f.a.best, f.b.best) })
	slices.SortFunc(all, func(f, g found) int { // the sums of floats depend on the order of the words
		return cmp.Or(cmp.Compare(math.Round(1e6*g.part), math.Round(1e6*f.part)), cmp.Compare(f.a.MarketID, g.a.MarketID), cmp.Compare(f.b.MarketID, g.b.MarketID))
	})
	out := make([]Candidate, len(all))
	for i, f := range all {
		out[i] = Candidate{f.a.Market, f.b.Market}
	}
	return out
}

// IsIn reports whether a question of the set has tokens of both markets.
func (c Candidate) IsIn(set *questions.Set) bool {
	for _, o := range c[0].Outcomes {
		for _, q := range set.OfToken(o.TokenID) {
			if slices.ContainsFunc(q.Legs, func(l questions.Leg) bool { return c[1].OutcomeByToken(l.Token) != nil }) {
				return true
			}
		}
	}
	return false
}

// fit reports whether the ends, the numbers and the months of two markets agree.
func fit(a, b *title) bool {
	apart := a.EndsAt.Sub(b.EndsAt).Abs()
	return (apart <= endsWithin || a.EndsAt.IsZero() || b.EndsAt.IsZero()) && (hasNumbers(a, b) || hasNumbers(b, a))
}

// hasNumbers reports whether a has all numbers and months of b.
func hasNumbers(a, b *title) bool {
	for word := range b.words {
		if isNumber(word) && !a.words[word] {
			return false
		}
	}
	return true
}

const months = "jan feb mar apr may jun jul aug sep oct nov dec"

func isNumber(word string) bool {
	return word[0] >= '0' && word[0] <= '9' || len(word) == 3 && strings.Contains(months, word)
}

// titles returns the titles of markets, and adds their words to count. It skips markets without tokens.
func titles(markets []*market.Market, count map[string]int) (out []*title) {
	for _, m := range markets {
		if len(m.Outcomes) == 0 || m.Outcomes[0].TokenID == "" {
			continue
		}
		t := &title{Market: m, words: wordsOf(m.Question + " " + m.GroupItemTitle)}
		for word := range t.words {
			count[word]++
		}
		out = append(out, t)
	}
	return out
}

var (
	wordForm  = regexp.MustCompile(`[0-9]+(?:[.,][0-9]+)*(?:[km]\b)?|\pL+`)
	monthForm = regexp.MustCompile(`^(?:january|february|march|april|june|july|august|sept|september|october|november|december)$`)
)

// wordsOf returns the words and numbers of a text in one spelling: without plurals, 100k and 100,000 as 100000, December as dec.
func wordsOf(text string) map[string]bool {
	words := make(map[string]bool)
	for _, word := range wordForm.FindAllString(strings.ToLower(text), -1) {
		switch {
		case word[0] >= '0' && word[0] <= '9':
			word = strings.NewReplacer(",", "", "k", "000", "m", "000000").Replace(word)
		case monthForm.MatchString(word):
			word = word[:3]
		case len(word) > 3:
			word = strings.TrimSuffix(word, "s")
		}
		words[word] = true
	}
	return words
}
