// Package pairs has the file of questions on several venues, and helps a person to find such questions and to confirm their rules. It
// never decides whether two markets ask the same question.
package pairs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/sjson"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

const maxQuestions = 10_000

var (
	idForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}:`)
	hashForm = regexp.MustCompile(`^([0-9a-f]{64})?$`)
	// dates writes days as YYYY-MM-DD, and readDates reads them.
	dates     = json.WithMarshalers(json.MarshalFunc(func(d market.Date) ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }))
	readDates = json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, d *market.Date) (err error) {
		*d, err = market.ParseDate(strings.Trim(string(text), `"`))
		return err
	}))
)

// Parse reads the content of the file, which is JSON. venues are the names of all venues in ids. An id of the first venue may begin with
// a lower-case word and a colon only if anyID is true; otherwise it is a mistake. An error names the place of what is wrong, such as
// "line 4: /questions/3/legs/0: …".
//
// A question has one leg at each of 2 to market.MaxVenues venues, so that a level of its book is known by its venue. No token belongs
// to two EXACT questions, because these would be one question. NEAR questions have differences, and EXACT questions have none.
func Parse(data []byte, venues market.Names, anyID bool) (*questions.Set, error) {
	var content struct {
		Version   int                  `json:"version"`
		Questions []questions.Question `json:"questions"`
	}
	err := json.Unmarshal(data, &content, json.RejectUnknownMembers(true), readDates)
	var place jsontext.Pointer
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		place, err = e.JSONPointer, e.Err
	} else if e, ok := errors.AsType[*json.SemanticError](err); ok {
		place, err = e.JSONPointer, cmp.Or(e.Err, errors.New("has the wrong type"))
	}
	switch {
	case err != nil:
		return nil, placed(data, place, err)
	case content.Version != 1:
		return nil, errors.New("/version: must be the number 1")
	case content.Questions == nil || len(content.Questions) > maxQuestions:
		return nil, fmt.Errorf("/questions: must be a list of at most %d elements", maxQuestions)
	}
	set := questions.NewSet(content.Questions...)
	for i, q := range set.All() {
		place = jsontext.Pointer(fmt.Sprintf("/questions/%d", i))
		for k, l := range q.Legs {
			err := checkLeg(l)
			if err == nil && !anyID && nameForm.MatchString(l.Token) && venues.Find(l.Token) == 0 {
				further := strings.TrimPrefix(strings.Join(venues, ", "), ", ")
				err = fmt.Errorf("the token %s is at no further venue; the further venues are: %s", l.Token, cmp.Or(further, "none"))
			}
			if err != nil {
				return nil, placed(data, place+jsontext.Pointer(fmt.Sprintf("/legs/%d", k)), err)
			}
		}
		if err := check(q, set, venues); err != nil {
			return nil, placed(data, place, err)
		}
	}
	return set, nil
}

// check returns what is wrong with a question of a set, apart from its single legs.
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
	seen := make(map[int]bool) // the venues
	for _, l := range q.Legs {
		venue := venues.Find(l.Token)
		if seen[venue] {
			return fmt.Errorf("has two legs at the venue of %s; it must have one at each venue", l.Token)
		}
		seen[venue] = true
		for _, other := range set.OfToken(l.Token) {
			if other != q && other.Match == questions.Exact && q.Match == questions.Exact {
				return fmt.Errorf("the token %s is also a leg of %q, and both are EXACT", l.Token, other.ID)
			}
		}
	}
	return nil
}

func checkLeg(l questions.Leg) error {
	switch rate := l.TakerFeeRate; {
	case market.CheckID(l.Token) != nil || strings.HasSuffix(l.Token, ":"):
		return fmt.Errorf("the token must have 1 to %d bytes without comma, slash, control characters and a last colon", market.MaxIDLength)
	case !hashForm.MatchString(l.RulesSHA256):
		return errors.New("rulesSha256 must be 64 lower-case hexadecimal digits")
	case rate != nil && (rate.Sign() < 0 || rate.Cmp(market.NewDecimal(1, 0)) > 0):
		return errors.New("takerFeeRate must be from 0 to 1")
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

// Accept returns the content of a valid file in which the legs of the question at an index confirm rules texts with the given hashes.
// Everything else stays as it is.
func Accept(content []byte, question int, hashes []string) (_ []byte, err error) {
	for leg, hash := range hashes {
		path := fmt.Sprintf("questions.%d.legs.%d.rulesSha256", question, leg)
		if content, err = sjson.SetBytes(content, path, hash); err != nil {
			return nil, err
		}
	}
	return content, nil
}
