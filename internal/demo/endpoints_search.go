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

// searchIndex has the weights of the words of each market. The weight depends on the text that contains the word, such as the question
// or a tag. It is built once. It contains no statuses of markets, because statuses change.
type searchIndex struct {
	markets []*market
	words   []map[string]int
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

// sortKeys has the key of each sort.
var sortKeys = map[string]func(*market) int64{
	sortRelevance: func(m *market) int64 { return int64(m.volume) },
	sortVolume:    func(m *market) int64 { return int64(m.volume) },
	sortVolume24h: func(m *market) int64 { return int64(m.volume24h) },
	sortLiquidity: func(m *market) int64 { return int64(m.liquidity) },
	sortStartsAt:  func(m *market) int64 { return int64(m.startAt) },
	sortEndsAt:    func(m *market) int64 { return int64(m.endAt) },
}

// newSearchIndex indexes the words of each market. A word's weight is the greatest weight of the texts that contain the word.
func newSearchIndex(u *universe) *searchIndex {
	x := &searchIndex{markets: u.markets, words: make([]map[string]int, len(u.markets))}
	for i, m := range x.markets {
		own := make(map[string]int)
		add := func(weight int, texts ...string) {
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
		x.words[i] = own
	}
	return x
}

// wordsOf splits text into lower-case words.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// scores returns a score for each market. The score is positive if each of the given words is a prefix of a word of the market.
// Otherwise, the score is 0. A match of a whole word counts twice.
func (x *searchIndex) scores(words []string) []int {
	total := make([]int, len(x.markets))
	for i, own := range x.words {
		for _, word := range words {
			best := 2 * own[word]
			for w, weight := range own {
				if strings.HasPrefix(w, word) {
					best = max(best, weight)
				}
			}
			if best == 0 {
				total[i] = 0
				break
			}
			total[i] += best
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
func (v *Venue) newSearch(c *call) search {
	s := search{words: wordsOf(c.get("q")), sort: cmp.Or(c.get("sort"), sortRelevance), ascending: strings.EqualFold(c.get("order"), "asc")}
	s.category, s.tag, s.eventID, s.eventSlug = c.get("category"), c.get("tag"), c.get("eventId"), c.get("eventSlug")
	if len(c.get("q")) > maxText {
		c.refuse("q is too long")
	}
	if len(s.words) > maxWords {
		c.refuse("q has too many words")
	}
	if c.get("status") != "" {
		s.statuses = strings.Split(strings.ToUpper(c.get("status")), ",")
		if slices.ContainsFunc(s.statuses, func(status string) bool { return !slices.Contains(statuses, status) }) {
			c.refuse("status is a list of " + strings.Join(statuses, ", "))
		}
	}
	s.endsAfter, _ = c.instant("endsAfter")
	s.endsBefore, s.hasEndsBefore = c.instant("endsBefore")
	if sortKeys[s.sort] == nil {
		c.refuse("sort is one of relevance, volume, volume24h, liquidity, startsAt, endsAt")
	}
	if order := c.get("order"); order != "" && !s.ascending && !strings.EqualFold(order, "desc") {
		c.refuse("order is asc or desc")
	}
	s.limit = c.number("limit", 1, maxSearch, defaultSearch)
	if cursor := c.get("cursor"); cursor != "" {
		id, err := base64.RawURLEncoding.DecodeString(cursor)
		if s.after = v.listing.marketByID[string(id)]; err != nil || s.after == nil {
			c.refuse("cursor is not valid")
		}
	}
	return s
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
	key := sortKeys[s.sort]
	var scores []int
	if len(s.words) > 0 {
		scores = x.scores(s.words)
	}
	compare := func(a, b *market) int {
		order := 0
		if scores != nil && s.sort == sortRelevance {
			order = cmp.Compare(scores[a.index], scores[b.index])
		}
		order = cmp.Or(order, cmp.Compare(key(a), key(b)), cmp.Compare(a.index, b.index))
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

func (v *Venue) answerSearch(c *call, b []byte) []byte {
	s := v.newSearch(c)
	if c.err != nil {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	page, total, more := v.index.find(&s)
	b = appendList(append(b, `{"markets":`...), page, func(b []byte, m *market) []byte { return m.append(b, true) })
	next := ""
	if more {
		next = base64.RawURLEncoding.EncodeToString([]byte(page[len(page)-1].id))
	}
	b = addTextOrNull(b, "nextCursor", next)
	b = strconv.AppendInt(addName(b, "totalCount"), int64(total), 10)
	return append(b, '}')
}
