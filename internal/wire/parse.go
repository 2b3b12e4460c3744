package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxValues bounds the number of values in one document, since a decoded value takes many times the memory of its text.
const MaxValues = 500_000

// Why a document cannot be read.
var (
	ErrEmpty     = errors.New("the body is empty")
	ErrTooMany   = errors.New("the body has too many values")
	ErrTruncated = errors.New("the body ends in the middle of its JSON")
	ErrSyntax    = errors.New("the body is not JSON")
	ErrTrailing  = errors.New("the body is more than one JSON value")
)

// Of two members with one name the last counts, and bytes that are no UTF-8 become U+FFFD.
var twice, replaced = jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)

// Parse reads one JSON value of at most MaxValues values into nil, bool, string, json.Number, []any and map[string]any. It
// is the only place that knows the JSON library. Its errors are those above, and quote nothing of the input.
func Parse(b []byte) (any, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, ErrEmpty
	}
	if bytes.Count(b, []byte{','})+bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) > MaxValues {
		return nil, ErrTooMany
	}
	p := parser{in: jsontext.NewDecoder(bytes.NewBuffer(b), twice, replaced), names: make(map[string]string, 32)}
	v, err := p.value()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, ErrTruncated
	case err != nil:
		return nil, ErrSyntax
	case len(bytes.TrimSpace(b[p.in.InputOffset():])) > 0:
		return nil, ErrTrailing
	}
	return v, nil
}

// parser reads one document.
type parser struct {
	in *jsontext.Decoder
	// names are those of members so far, each once.
	names map[string]string
	// members are how many the object before had, since those of a list are alike.
	members int
}

// maxForeseen bounds the members that an object is given room for.
const maxForeseen = 64

func (p *parser) value() (any, error) {
	switch p.in.PeekKind() {
	case jsontext.KindBeginObject:
		return p.object()
	case jsontext.KindBeginArray:
		return p.list()
	}
	text, err := p.in.ReadValue()
	if err != nil {
		return nil, err
	}
	switch text.Kind() {
	case jsontext.KindNull:
		return nil, nil
	case jsontext.KindTrue:
		return true, nil
	case jsontext.KindFalse:
		return false, nil
	case jsontext.KindNumber:
		return json.Number(text), nil
	default:
		return unquoted(text), nil
	}
}

func (p *parser) object() (any, error) {
	if _, err := p.in.ReadToken(); err != nil {
		return nil, err
	}
	m := make(map[string]any, p.members)
	for p.in.PeekKind() != jsontext.KindEndObject {
		text, err := p.in.ReadValue()
		if err != nil {
			return nil, err
		}
		name := p.name(text)
		if m[name], err = p.value(); err != nil {
			return nil, err
		}
	}
	p.members = min(len(m), maxForeseen)
	_, err := p.in.ReadToken()
	return m, err
}

func (p *parser) list() (any, error) {
	if _, err := p.in.ReadToken(); err != nil {
		return nil, err
	}
	list := []any{}
	for p.in.PeekKind() != jsontext.KindEndArray {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.in.ReadToken()
	return list, err
}

// name returns the name of a member, in memory that equal names share.
func (p *parser) name(quoted jsontext.Value) string {
	if known, ok := p.names[string(quoted)]; ok {
		return known
	}
	name := unquoted(quoted)
	p.names[string(quoted)] = name
	return name
}

// unquoted returns what a string of JSON says.
func unquoted(quoted jsontext.Value) string {
	if inside := quoted[1 : len(quoted)-1]; plain(inside) {
		return string(inside)
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // which replaces what is no UTF-8, and the decoder knows that all else is right
	return string(text)
}

// plain reports whether all bytes of a string of JSON say what they are.
func plain(inside []byte) bool {
	for _, c := range inside {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}
