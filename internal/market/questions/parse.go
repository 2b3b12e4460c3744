package questions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"oddsgraph/internal/market"
)

// The limits of a file.
const (
	// MaxFile is the greatest size of a file in bytes, and MaxQuestions the greatest number of its questions.
	MaxFile, MaxQuestions = 8 << 20, 10_000
	// maxText is the greatest length of a text in bytes, and maxDifferences the greatest number of differences of a question.
	maxText, maxDifferences = 1000, 50
)

// Venues tells which tokens can exist.
type Venues struct {
	// Names are the names of the further venues.
	Names market.Names
	// AnyID reports that an id of the first venue may begin with a lower-case word and a colon. If it is false, such a word must be
	// one of Names, because anything else is a mistake.
	AnyID bool
}

var (
	idForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	hashForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	venueForm = regexp.MustCompile(`^([a-z][a-z0-9-]{0,31}):`)
)

// Parse reads a file of questions. An error names the line, the column and the path of what is wrong, such as
// "line 4, column 13: questions[3].legs[0].token: …".
//
// A question has one leg at each of 2 to market.MaxVenues venues, so that a level of its book is known by its venue. No token belongs
// to two EXACT questions, because these would be one question. NEAR questions have differences, and EXACT questions have none.
func Parse(data []byte, venues Venues) (*Set, error) {
	switch {
	case len(data) > MaxFile:
		return nil, fmt.Errorf("it is larger than %d bytes", MaxFile)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	d := newDecoder(data)
	s := &Set{byID: make(map[string]*Question), byToken: make(map[string][]*Question)}
	err := d.object(fields{
		"version": func() error {
			version, err := d.token()
			if err == nil && version != json.Number("1") {
				err = d.errorf("must be the number 1")
			}
			return err
		},
		"questions": func() error {
			return d.list(MaxQuestions, func() error {
				q, err := d.question(venues)
				if err == nil {
					err = s.add(q, d)
				}
				return err
			})
		},
	}, "version", "questions")
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// add adds a question that d has read last.
func (s *Set) add(q *Question, d *decoder) error {
	if s.byID[q.ID] != nil {
		return d.errorf("the id %q is that of an earlier question", q.ID)
	}
	for _, l := range q.Legs {
		for _, other := range s.byToken[l.Token] {
			if q.Match == Exact && other.Match == Exact {
				return d.errorf("the token %s is a leg of %q, and both are EXACT", l.Token, other.ID)
			}
		}
		s.byToken[l.Token] = append(s.byToken[l.Token], q)
	}
	s.all, s.byID[q.ID] = append(s.all, q), q
	return nil
}

func (d *decoder) question(venues Venues) (*Question, error) {
	q := &Question{}
	err := d.object(fields{
		"id":    func() error { return d.match(&q.ID, idForm, "1 to 64 letters, digits, dots, hyphens and underscores") },
		"title": func() error { return d.text(&q.Title, 1) },
		"match": func() error {
			t, err := d.token()
			text, _ := t.(string)
			if q.Match = Match(text); err != nil || q.Match == Exact || q.Match == Near || q.Match == Related {
				return err
			}
			return d.errorf("must be EXACT, NEAR or RELATED")
		},
		"differences": func() error {
			return d.list(maxDifferences, func() error {
				q.Differences = append(q.Differences, "")
				return d.text(&q.Differences[len(q.Differences)-1], 1)
			})
		},
		"checkedAt": func() (err error) {
			var text string
			if err = d.text(&text, 1); err != nil {
				return err
			}
			if q.CheckedAt, err = market.ParseDate(text); err != nil {
				return d.errorf("must be a day such as 2026-01-31")
			}
			return nil
		},
		"checkedBy": func() error { return d.text(&q.CheckedBy, 0) },
		"legs": func() error {
			return d.list(market.MaxVenues, func() error {
				l, err := d.leg(venues)
				q.Legs = append(q.Legs, l)
				return err
			})
		},
	}, "id", "title", "match", "checkedAt", "legs")
	switch {
	case err != nil:
		return nil, err
	case len(q.Legs) < 2:
		return nil, d.errorf("has %d legs; it must have at least 2", len(q.Legs))
	case q.Match == Near && len(q.Differences) == 0:
		return nil, d.errorf("is NEAR without differences")
	case q.Match == Exact && len(q.Differences) > 0:
		return nil, d.errorf("is EXACT with differences; it must be NEAR, or have none")
	}
	seen := make(map[int]bool)
	for _, l := range q.Legs {
		at := venues.Names.Find(l.Token)
		if seen[at] {
			return nil, d.errorf("has two legs at the venue of %s; it must have one at each venue", l.Token)
		}
		seen[at] = true
	}
	return q, nil
}

func (d *decoder) leg(venues Venues) (l Leg, err error) {
	err = d.object(fields{
		"token": func() error {
			if err := d.text(&l.Token, 1); err != nil {
				return err
			}
			if err := market.CheckID(l.Token); err != nil {
				return d.errorf("%s", strings.TrimPrefix(err.Error(), string(market.CodeOf(err))+": "))
			}
			if m := venueForm.FindStringSubmatch(l.Token); m != nil && !venues.AnyID && venues.Names.Find(l.Token) < 0 {
				return d.errorf("%q is no further venue; the further venues are: %s", m[1], cmp.Or(strings.Join(venues.Names, ", "), "none"))
			}
			if end := int(d.json.InputOffset()); l.RulesSHA256 == "" {
				l.hash = span{end, end}
			}
			return nil
		},
		"rulesSha256": func() error {
			err := d.match(&l.RulesSHA256, hashForm, "64 lower-case hexadecimal digits")
			l.hash = span{d.at, int(d.json.InputOffset())}
			return err
		},
		"takerFeeRate": func() error {
			var text string
			if err := d.text(&text, 1); err != nil {
				return err
			}
			rate, err := market.ParseDecimal(text)
			if err != nil || rate.Sign() < 0 || rate.Cmp(one) > 0 {
				return d.errorf("must be a decimal number from 0 to 1 in quotes")
			}
			l.TakerFeeRate = &rate
			return nil
		},
	}, "token")
	return l, err
}

// match reads a text with a form. An error says what the text must be.
func (d *decoder) match(to *string, form *regexp.Regexp, must string) error {
	err := d.text(to, 1)
	if err == nil && !form.MatchString(*to) {
		err = d.errorf("must be %s", must)
	}
	return err
}

// text reads a text of at least the given length in bytes.
func (d *decoder) text(to *string, least int) error {
	text, err := d.string()
	if err != nil {
		return err
	}
	if len(text) < least || len(text) > maxText {
		return d.errorf("has %d bytes; it must have %d to %d", len(text), least, maxText)
	}
	*to = text
	return nil
}
