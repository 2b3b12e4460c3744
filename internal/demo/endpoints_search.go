package demo

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of market-search.
const (
	defaultSearch = 20
	maxSearch     = 100
	maxWords      = 16 // in a search text
)

// searchIndex finds and sorts markets. It is built once. It contains no statuses of markets, because statuses change.
type searchIndex struct {
	markets []*market
	ranks   map[string][]int32 // sort key → market index → rank in ascending order
	words   []string           // sorted
	hits    [][]hit            // hits[i] has the hits of words[i]
}

// hit is a market with a word in one of its texts. weight depends on the text that contains the word, such as the question or a
// tag.
type hit struct {
	market int32
	weight int32
}

// The sorts of market-search. Without a search text, relevance sorts by volume.
const (
	sortRelevance = "relevance"
	sortVolume    = "volume"
	sortVolume24h = "volume24h"
	sortLiquidity = "liquidity"
	sortStartsAt  = "startsAt"
	sortEndsAt    = "endsAt"
)

func newSearchIndex(u *universe) *searchIndex {
	x := &searchIndex{markets: u.markets, ranks: make(map[string][]int32)}
	keys := map[string]func(*market) int64{
		sortVolume:    func(m *market) int64 { return int64(m.volume) },
		sortVolume24h: func(m *market) int64 { return int64(m.volume24h) },
		sortLiquidity: func(m *market) int64 { return int64(m.liquidity) },
		sortStartsAt:  func(m *market) int64 { return int64(m.startAt) },
		sortEndsAt:    func(m *market) int64 { return int64(m.endAt) },
	}
	for name, key := range keys {
		order := slices.Clone(u.markets)
		slices.SortFunc(order, func(a, b *market) int {
			return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.index, b.index))
		})
		rank := make([]int32, len(order))
		for place, m := range order {
			rank[m.index] = int32(place)
		}
		x.ranks[name] = rank
	}
	x.ranks[sortRelevance] = x.ranks[sortVolume]
	x.addWords()
	return x
}

// addWords indexes the words of each market. A word's weight is the greatest weight of the texts that contain the word.
func (x *searchIndex) addWords() {
	index := make(map[string][]hit)
	for i, m := range x.markets {
		own := make(map[string]int32)
		add := func(weight int32, texts ...string) {
			for _, text := range texts {
				for _, w := range wordsOf(text) {
					own[w] = max(own[w], weight)
				}
			}
		}
		add(8, m.question, m.groupTitle)
		for _, t := range m.tokens {
			if !m.binary() {
				add(7, t.label)
			}
		}
		add(5, m.event.title)
		add(4, m.tags...)
		add(4, m.category)
		for w, weight := range own {
			index[w] = append(index[w], hit{int32(i), weight})
		}
	}
	for w := range index {
		x.words = append(x.words, w)
	}
	slices.Sort(x.words)
	for _, w := range x.words {
		x.hits = append(x.hits, index[w])
	}
}

// wordsOf splits text into lower-case words.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// scores returns a score for each market. The score is positive if each of the given words is a prefix of a word of the market.
// Otherwise, the score is 0. A match of a whole word counts twice.
func (x *searchIndex) scores(words []string) []int32 {
	total := make([]int32, len(x.markets))
	for n, word := range words {
		own := make([]int32, len(x.markets))
		from, _ := slices.BinarySearch(x.words, word)
		for i := from; i < len(x.words) && strings.HasPrefix(x.words[i], word); i++ {
			whole := int32(1)
			if x.words[i] == word {
				whole = 2
			}
			for _, h := range x.hits[i] {
				own[h.market] = max(own[h.market], h.weight*whole)
			}
		}
		for i := range total {
			if own[i] == 0 || n > 0 && total[i] == 0 {
				total[i] = 0
			} else {
				total[i] += own[i]
			}
		}
	}
	return total
}

type search struct {
	statuses              []string
	category, tag         string
	endsAfter, endsBefore millis // inclusive
	hasEndsBefore         bool
	eventID, eventSlug    string
	words                 []string
	sort                  string
	ascending             bool
	limit                 int
	after                 *market // last market of the previous page; nil for the first page
}

// newSearch reads a request. The default order is descending for every sort.
func (v *Venue) newSearch(c *call) (s search, err *apiError) {
	if len(c.get("q")) > maxText {
		return s, badRequest("q is too long")
	}
	if s.words = wordsOf(c.get("q")); len(s.words) > maxWords {
		return s, badRequest("q has too many words")
	}
	if c.get("status") != "" {
		for status := range strings.SplitSeq(c.get("status"), ",") {
			status = strings.ToUpper(status)
			if !slices.Contains(statuses, status) {
				return s, badRequest("status is a list of " + strings.Join(statuses, ", "))
			}
			s.statuses = append(s.statuses, status)
		}
	}
	s.category, s.tag, s.eventID, s.eventSlug = c.get("category"), c.get("tag"), c.get("eventId"), c.get("eventSlug")
	if s.endsAfter, _, err = c.instant("endsAfter"); err != nil {
		return s, err
	}
	if s.endsBefore, s.hasEndsBefore, err = c.instant("endsBefore"); err != nil {
		return s, err
	}
	s.sort = cmp.Or(c.get("sort"), sortRelevance)
	if v.index.ranks[s.sort] == nil {
		return s, badRequest("sort is one of relevance, volume, volume24h, liquidity, startsAt, endsAt")
	}
	switch cmp.Or(strings.ToLower(c.get("order")), "desc") {
	case "asc":
		s.ascending = true
	case "desc":
	default:
		return s, badRequest("order is asc or desc")
	}
	if s.limit, err = c.number("limit", 1, maxSearch, defaultSearch); err != nil {
		return s, err
	}
	if cursor := c.get("cursor"); cursor != "" {
		id, decodeErr := base64.RawURLEncoding.DecodeString(cursor)
		if s.after = v.listing.marketByID[string(id)]; decodeErr != nil || s.after == nil {
			return s, badRequest("cursor is not valid")
		}
	}
	return s, nil
}

// matches reports whether the market passes the filters. It does not compare the search text.
func (s *search) matches(m *market) bool {
	return (len(s.statuses) == 0 || slices.Contains(s.statuses, m.status)) &&
		(s.category == "" || strings.EqualFold(s.category, m.category)) &&
		(s.tag == "" || slices.ContainsFunc(m.tags, func(tag string) bool { return strings.EqualFold(tag, s.tag) })) &&
		m.endAt >= s.endsAfter && (!s.hasEndsBefore || m.endAt <= s.endsBefore) &&
		(s.eventID == "" || s.eventID == m.event.id) &&
		(s.eventSlug == "" || s.eventSlug == m.event.slug)
}

// find returns a page of markets, the number of all matches, and whether there are matches after the page.
func (x *searchIndex) find(s *search) (page []*market, total int, more bool) {
	rank := x.ranks[s.sort]
	var scores []int32
	if len(s.words) > 0 {
		scores = x.scores(s.words)
	}
	compare := func(a, b *market) int {
		order := 0
		if scores != nil && s.sort == sortRelevance {
			order = cmp.Compare(scores[a.index], scores[b.index])
		}
		order = cmp.Or(order, cmp.Compare(rank[a.index], rank[b.index]))
		if s.ascending {
			return order
		}
		return -order
	}
	for _, m := range x.markets {
		if scores != nil && scores[m.index] == 0 || !s.matches(m) {
			continue
		}
		total++
		if s.after == nil || compare(m, s.after) > 0 {
			page = append(page, m)
		}
	}
	slices.SortFunc(page, compare)
	if len(page) > s.limit {
		return page[:s.limit], total, true
	}
	return page, total, false
}

func (v *Venue) answerSearch(c *call, b []byte) ([]byte, *apiError) {
	s, err := v.newSearch(c)
	if err != nil {
		return b, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	page, total, more := v.index.find(&s)
	b = append(b, `{"markets":[`...)
	for i, m := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = m.append(b, true)
	}
	b = append(b, ']')
	if more {
		last := page[len(page)-1].id
		b = addText(b, "nextCursor", base64.RawURLEncoding.EncodeToString([]byte(last)))
	} else {
		b = append(addName(b, "nextCursor"), "null"...)
	}
	b = strconv.AppendInt(addName(b, "totalCount"), int64(total), 10)
	return append(b, '}'), nil
}
