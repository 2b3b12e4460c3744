package questions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// fileText is the content of a file.
type fileText struct {
	Version   json.Number
	Questions []struct {
		ID, Title, CheckedAt, CheckedBy string
		Match                           Match
		Differences                     []string
		Legs                            []struct {
			Token                     string
			RulesSHA256, TakerFeeRate *string
		}
	}
}

// Parse reads a file of questions. An error names the place of what is wrong, such as
// "line 4, column 13: questions[3].legs[0].token: …", or an unknown field.
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
	var text fileText
	if err := decode(data, &text); err != nil {
		return nil, err
	}
	at := &places{data: data, json: json.NewDecoder(bytes.NewReader(data)), spans: make(map[string]span)}
	switch at.value(""); {
	case at.twice != "":
		return nil, at.errorf(at.twice, "is there twice")
	case text.Version != "1":
		return nil, at.errorf(".version", "must be the number 1")
	case text.Questions == nil || len(text.Questions) > MaxQuestions:
		return nil, at.errorf(".questions", "must be a list of at most %d elements", MaxQuestions)
	}
	s := &Set{byID: make(map[string]*Question), byToken: make(map[string][]*Question)}
	for i, t := range text.Questions {
		q := &Question{ID: t.ID, Title: t.Title, Match: t.Match, Differences: t.Differences, CheckedBy: t.CheckedBy}
		c := &checker{places: at, path: fmt.Sprintf(".questions[%d]", i), venues: venues}
		for j, l := range t.Legs {
			q.Legs = append(q.Legs, Leg{Token: l.Token})
			c.leg(fmt.Sprintf(".legs[%d]", j), &q.Legs[j], l.RulesSHA256, l.TakerFeeRate)
		}
		c.question(q, t.CheckedAt)
		if s.add(q, c); c.err != nil {
			return nil, c.err
		}
	}
	return s, nil
}

func decode(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		return errorAt(data, int(d.InputOffset()), "there is something after the end")
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errorAt(data, int(kind.Offset), "must not be a "+kind.Value)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errorAt(data, int(syntax.Offset)-1, "it is not JSON: "+syntax.Error())
	}
	return err
}

// add adds a question.
func (s *Set) add(q *Question, c *checker) {
	c.require(s.byID[q.ID] == nil, "", "the id %q is that of an earlier question", q.ID)
	for _, l := range q.Legs {
		for _, other := range s.byToken[l.Token] {
			c.require(q.Match != Exact || other.Match != Exact, "", "the token %s is a leg of %q, and both are EXACT", l.Token, other.ID)
		}
		s.byToken[l.Token] = append(s.byToken[l.Token], q)
	}
	s.all, s.byID[q.ID] = append(s.all, q), q
}

// checker checks the question with a path. err is the first error.
type checker struct {
	*places
	path   string
	venues Venues
	err    error
}

// require makes the text the error of a field of the question unless ok.
func (c *checker) require(ok bool, field, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = c.errorf(c.path+field, format, args...)
	}
}

func (c *checker) text(field, text string, least int) {
	c.require(least <= len(text) && len(text) <= maxText, field, "has %d bytes; it must have %d to %d", len(text), least, maxText)
}

func (c *checker) question(q *Question, checkedAt string) {
	c.require(idForm.MatchString(q.ID), ".id", "must be 1 to 64 letters, digits, dots, hyphens and underscores")
	c.text(".title", q.Title, 1)
	c.require(q.Match == Exact || q.Match == Near || q.Match == Related, ".match", "must be EXACT, NEAR or RELATED")
	c.require(len(q.Differences) <= maxDifferences, ".differences", "has more than %d elements", maxDifferences)
	for i, d := range q.Differences {
		c.text(fmt.Sprintf(".differences[%d]", i), d, 1)
	}
	var err error
	q.CheckedAt, err = market.ParseDate(checkedAt)
	c.require(err == nil, ".checkedAt", "must be a day such as 2026-01-31")
	c.text(".checkedBy", q.CheckedBy, 0)
	c.require(len(q.Legs) >= 2, "", "has %d legs; it must have at least 2", len(q.Legs))
	c.require(len(q.Legs) <= market.MaxVenues, ".legs", "has more than %d elements", market.MaxVenues)
	c.require(q.Match != Near || len(q.Differences) > 0, "", "is NEAR without differences")
	c.require(q.Match != Exact || len(q.Differences) == 0, "", "is EXACT with differences; it must be NEAR, or have none")
	seen := make(map[int]bool)
	for _, l := range q.Legs {
		at := c.venues.Names.Find(l.Token)
		c.require(!seen[at], "", "has two legs at the venue of %s; it must have one at each venue", l.Token)
		seen[at] = true
	}
}

func (c *checker) leg(path string, l *Leg, hash, rate *string) {
	if err := market.CheckID(l.Token); err != nil {
		c.require(false, path+".token", "%s", strings.TrimPrefix(err.Error(), string(market.CodeOf(err))+": "))
	}
	if m := venueForm.FindStringSubmatch(l.Token); m != nil && !c.venues.AnyID {
		c.require(c.venues.Names.Find(l.Token) >= 0, path+".token", "%q is no further venue; the further venues are: %s", m[1], cmp.Or(strings.Join(c.venues.Names, ", "), "none"))
	}
	if hash != nil {
		l.RulesSHA256 = *hash
		c.require(hashForm.MatchString(*hash), path+".rulesSha256", "must be 64 lower-case hexadecimal digits")
	}
	if rate != nil {
		d, err := market.ParseDecimal(*rate)
		c.require(err == nil && d.Sign() >= 0 && d.Cmp(one) <= 0, path+".takerFeeRate", "must be a decimal number from 0 to 1 in quotes")
		l.TakerFeeRate = &d
	}
	var written bool
	if l.hash, written = c.spans[c.path+path+".rulesSha256"]; !written {
		end := c.spans[c.path+path+".token"].to
		l.hash = span{end, end}
	}
}
