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
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

// The limits of a file.
const (
	MaxFile      = 8 << 20 // bytes
	maxQuestions = 10_000
)

var (
	idForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	hashForm  = regexp.MustCompile(`^([0-9a-f]{64})?$`)
	venueForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}:`)
)

var anyCase = json.MatchCaseInsensitiveNames(true)

// File checks a file of questions.
type File struct {
	// Venues are the names of the venues.
	Venues market.Names
	// AnyID reports that an id of the first venue may begin with a lower-case word and a colon. If it is false, such a word must be
	// that of one of Venues, because anything else is a mistake.
	AnyID bool

	ids   map[string]bool
	exact map[string]string // maps the tokens of EXACT questions to the ids of these questions
}

// Parse reads the content of the file. An error names the place of what is wrong, such as
// "line 4, column 13: /questions/3/legs/0: …".
//
// A question has one leg at each of 2 to market.MaxVenues venues, so that a level of its book is known by its venue. No token belongs
// to two EXACT questions, because these would be one question. NEAR questions have differences, and EXACT questions have none.
func (f File) Parse(data []byte) (*questions.Set, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxFile)
	}
	var content struct {
		Version   int
		Questions []questions.Question
	}
	f.ids, f.exact = make(map[string]bool), make(map[string]string)
	err := json.Unmarshal(data, &content, anyCase, json.RejectUnknownMembers(true), json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(f.question), json.UnmarshalFromFunc(f.leg), json.UnmarshalFunc(day))))
	switch {
	case err != nil:
		return nil, placed(data, err)
	case content.Version != 1:
		return nil, errors.New("/version: must be the number 1")
	case content.Questions == nil || len(content.Questions) > maxQuestions:
		return nil, fmt.Errorf("/questions: must be a list of at most %d elements", maxQuestions)
	}
	return questions.NewSet(content.Questions...), nil
}

func (f File) question(d *jsontext.Decoder, q *questions.Question) error {
	type plain questions.Question
	from := d.InputOffset()
	if err := json.UnmarshalDecode(d, (*plain)(q)); err != nil {
		return err
	}
	switch {
	case !idForm.MatchString(q.ID):
		return fault(from, "the id must be 1 to 64 letters, digits, dots, hyphens and underscores")
	case f.ids[q.ID]:
		return fault(from, "the id %q is that of an earlier question", q.ID)
	case q.Title == "" || slices.Contains(q.Differences, ""):
		return fault(from, "the title or a difference is empty")
	case q.CheckedAt == 0:
		return fault(from, "has no checkedAt")
	case q.Match == "":
		return fault(from, "has no match; it must be EXACT, NEAR or RELATED")
	case q.Match == questions.Near && len(q.Differences) == 0:
		return fault(from, "is NEAR without differences")
	case q.Match == questions.Exact && len(q.Differences) > 0:
		return fault(from, "is EXACT with differences; it must be NEAR, or have none")
	case len(q.Legs) < 2 || len(q.Legs) > market.MaxVenues:
		return fault(from, "has %d legs; it must have 2 to %d", len(q.Legs), market.MaxVenues)
	}
	f.ids[q.ID] = true
	seen := make(map[int]bool) // the venues
	for _, l := range q.Legs {
		venue := f.Venues.Find(l.Token)
		if seen[venue] {
			return fault(from, "has two legs at the venue of %s; it must have one at each venue", l.Token)
		}
		seen[venue] = true
		if other := f.exact[l.Token]; q.Match == questions.Exact && other != "" {
			return fault(from, "the token %s is a leg of %q, and both are EXACT", l.Token, other)
		} else if q.Match == questions.Exact {
			f.exact[l.Token] = q.ID
		}
	}
	return nil
}

func (f File) leg(d *jsontext.Decoder, l *questions.Leg) error {
	type plain questions.Leg
	from := d.InputOffset()
	if err := json.UnmarshalDecode(d, (*plain)(l)); err != nil {
		return err
	}
	switch rate := l.TakerFeeRate; {
	case market.CheckID(l.Token) != nil:
		return fault(from, "the token must have 1 to %d bytes without comma, slash and control characters", market.MaxIDLength)
	case !f.AnyID && venueForm.MatchString(l.Token) && f.Venues.Find(l.Token) == 0:
		return fault(from, "the token %s is at no further venue; the further venues are: %s", l.Token, cmp.Or(strings.TrimPrefix(strings.Join(f.Venues, ", "), ", "), "none"))
	case !hashForm.MatchString(l.RulesSHA256):
		return fault(from, "rulesSha256 must be 64 lower-case hexadecimal digits")
	case rate != nil && (rate.Sign() < 0 || rate.Cmp(market.NewDecimal(1, 0)) > 0):
		return fault(from, "takerFeeRate must be from 0 to 1")
	}
	return nil
}

func day(text []byte, to *market.Date) (err error) {
	*to, err = market.ParseDate(strings.Trim(string(text), `"`))
	return err
}

// fault returns an error of the value that follows an offset.
func fault(offset int64, format string, args ...any) error {
	return &json.SemanticError{ByteOffset: offset, Err: fmt.Errorf(format, args...)}
}

// placed returns an error of json with the line and the column of the value.
func placed(data []byte, err error) error {
	var offset int64
	var path jsontext.Pointer
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, path, err = e.ByteOffset, e.JSONPointer, e.Err
	} else if e, ok := errors.AsType[*json.SemanticError](err); ok {
		after := data[e.ByteOffset:]
		offset, path, err = e.ByteOffset+int64(len(after)-len(bytes.TrimLeft(after, " \t\r\n,:"))), e.JSONPointer, e.Err
		if err == nil {
			err = errors.New("has the wrong type")
		}
	}
	before := data[:min(int(offset), len(data))]
	line, column := 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("line %d, column %d: %s: %w", line, column, cmp.Or(path, "/"), err)
}

// span is the place of a value in a file.
type span struct{ from, to int }

func (s *span) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	raw, err := d.ReadValue()
	s.to = int(d.InputOffset())
	s.from = s.to - len(raw)
	return err
}

// Accept returns the content of a valid file in which the legs of a question confirm rules texts with the given hashes. Everything else
// stays as it is.
func Accept(content []byte, id string, hashes []string) []byte {
	type entry struct {
		ID   string
		Legs []struct{ Token, RulesSHA256 span }
	}
	var file struct{ Questions []entry }
	_ = json.Unmarshal(content, &file, anyCase) // it is valid
	q := file.Questions[slices.IndexFunc(file.Questions, func(q entry) bool { return q.ID == id })]
	for i, l := range slices.Backward(q.Legs) { // an edit moves what is after it
		at, text := l.RulesSHA256, `"`+hashes[i]+`"`
		if at.to == 0 {
			at, text = span{l.Token.to, l.Token.to}, `, "rulesSha256": `+text
		}
		content = slices.Concat(content[:at.from], []byte(text), content[at.to:])
	}
	return content
}
