// Package pairs has the file of questions on several venues, and helps a person to find such questions and to confirm their rules. It
// never decides whether two markets ask the same question.
package pairs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

var (
	idForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	hashForm = regexp.MustCompile(`^([0-9a-f]{64})?$`)
)

// Parse reads the content of the file, which is JSON. venues are the names of all venues in ids. An error names the place of what is
// wrong, such as "line 4: /questions/3: …".
//
// A question has one leg at each of 2 to market.MaxVenues venues, so that a level of its book is known by its venue. No token belongs
// to two EXACT questions, because these would be one question. NEAR questions have differences, and EXACT questions have none.
func Parse(data []byte, venues market.Names) (*questions.Set, error) {
	var content struct {
		Version   int                  `json:"version"`
		Questions []questions.Question `json:"questions"`
	}
	err := json.Unmarshal(data, &content, json.RejectUnknownMembers(true))
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, placed(data, e.JSONPointer, e.Err)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return nil, placed(data, e.JSONPointer, cmp.Or(e.Err, errors.New("has the wrong type")))
	}
	if content.Version != 1 || content.Questions == nil {
		return nil, placed(data, "", errors.New("must have the version 1 and a list of questions"))
	}
	set := questions.NewSet(content.Questions...)
	for i, q := range set.All() {
		if err := check(q, set, venues); err != nil {
			return nil, placed(data, jsontext.Pointer(fmt.Sprintf("/questions/%d", i)), err)
		}
	}
	return set, nil
}

// check returns what is wrong with a question of a set.
func check(q *questions.Question, set *questions.Set, venues market.Names) error {
	switch {
	case !idForm.MatchString(q.ID):
		return errors.New("the id must be 1 to 64 letters, digits, dots, hyphens and underscores")
	case set.Find(q.ID) != q:
		return fmt.Errorf("the id %q is that of another question, too", q.ID)
	case q.Title == "" || q.Match == "" || q.CheckedAt == 0:
		return errors.New("the title, match or checkedAt is missing")
	case q.Match != questions.Related && (q.Match == questions.Near) != (len(q.Differences) > 0):
		return errors.New("a NEAR question must have differences, and an EXACT one none")
	case len(q.Legs) < 2 || len(q.Legs) > market.MaxVenues:
		return fmt.Errorf("has %d legs; it must have 2 to %d", len(q.Legs), market.MaxVenues)
	}
	other := func(o *questions.Question) bool { return o != q && o.Match == questions.Exact }
	seen := make(map[int]bool) // the venues
	for _, l := range q.Legs {
		venue := venues.Find(l.Token)
		switch rate := l.TakerFeeRate; {
		case market.CheckID(l.Token) != nil || strings.HasSuffix(l.Token, ":"):
			return fmt.Errorf("the token %q must have 1 to %d bytes without comma, slash, control characters and a last colon", l.Token, market.MaxIDLength)
		case !hashForm.MatchString(l.RulesSHA256):
			return fmt.Errorf("the rulesSha256 of %s must be 64 lower-case hexadecimal digits", l.Token)
		case rate != nil && (rate.Sign() < 0 || rate.Cmp(market.NewDecimal(1, 0)) > 0):
			return fmt.Errorf("the takerFeeRate of %s must be from 0 to 1", l.Token)
		case seen[venue]:
			return fmt.Errorf("has two legs at the venue of %s; it must have one at each venue", l.Token)
		case q.Match == questions.Exact && slices.ContainsFunc(set.OfToken(l.Token), other):
			return fmt.Errorf("the token %s is also a leg of another question, and both are EXACT", l.Token)
		}
		seen[venue] = true
	}
	return nil
}

// placed returns an error with the place of a value.
func placed(data []byte, place jsontext.Pointer, err error) error {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for d.StackPointer() != place {
		if _, err := d.ReadToken(); err != nil { // at the end of what can be read
			break
		}
	}
	line := 1 + bytes.Count(data[:d.InputOffset()], []byte("\n"))
	return fmt.Errorf("line %d: %s: %w", line, cmp.Or(place, "/"), err)
}
