package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxValues bounds the number of values in one document, since what is noted of a value can take many times the memory of
// its text.
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

// Parse checks that b is one JSON value of at most MaxValues values and returns it. The value reads b, which must not be
// changed meanwhile. This file is the only place that knows the JSON library. The errors are those above, and quote
// nothing of the input.
func Parse(b []byte) (Value, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return Value{}, ErrEmpty
	}
	// Every value but the outermost follows a comma or is the first of a list or object.
	inside := bytes.Count(b, []byte{','}) + bytes.Count(b, []byte{'['}) + bytes.Count(b, []byte{'{'})
	if inside > MaxValues || uint64(len(b)) > math.MaxUint32 {
		return Value{}, ErrTooMany
	}
	p := parsers.Get().(*parser)
	defer p.release()
	p.text = *bytes.NewBuffer(b)
	p.in.Reset(&p.text, twice, replaced)
	p.document = document{
		text: b, nodes: make([]node, 0, 1+inside),
		escapes: bytes.IndexByte(b, '\\') >= 0, spoilt: !utf8.Valid(b),
	}
	err := p.value(node{})
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Value{}, ErrTruncated
	case err != nil:
		return Value{}, ErrSyntax
	case len(bytes.TrimSpace(b[p.offset():])) > 0:
		return Value{}, ErrTrailing
	}
	d := p.document
	return Value{in: &d}, nil
}

// parsers are those that are not in use: a decoder takes more memory than most frames.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// parser takes one document apart.
type parser struct {
	in   jsontext.Decoder
	text bytes.Buffer
	// document is what has been noted so far.
	document
}

// release lets go of the document, and lets the parser be used for another.
func (p *parser) release() {
	p.text, p.document = bytes.Buffer{}, document{}
	p.in.Reset(&p.text)
	parsers.Put(p)
}

// offset is where what was read last ends.
func (p *parser) offset() uint32 { return uint32(p.in.InputOffset()) }

// value completes the node of the next value, which has its name if it is a member, and notes all that is in it.
func (p *parser) value(n node) (err error) {
	at := len(p.nodes)
	p.nodes = append(p.nodes, n)
	n.kind = Kind(p.in.PeekKind())
	switch n.kind {
	case Object:
		for n.start, err = p.delimiter(); err == nil && p.in.PeekKind() != jsontext.KindEndObject; {
			err = p.member()
		}
	case List:
		for n.start, err = p.delimiter(); err == nil && p.in.PeekKind() != jsontext.KindEndArray; {
			err = p.value(node{})
		}
	default:
		var text jsontext.Value
		text, err = p.in.ReadValue()
		n.start = p.offset() - uint32(len(text))
	}
	if err == nil && (n.kind == Object || n.kind == List) {
		_, err = p.delimiter()
	}
	n.end, n.after = p.offset(), uint32(len(p.nodes))
	p.nodes[at] = n
	return err
}

// member notes a member of an object.
func (p *parser) member() error {
	name, err := p.in.ReadValue()
	if err != nil {
		return err
	}
	return p.value(node{name: p.offset() - uint32(len(name)), nameEnd: p.offset(), odd: p.odd(name)})
}

// delimiter reads a bracket or brace and returns where it is.
func (p *parser) delimiter() (at uint32, err error) {
	_, err = p.in.ReadToken()
	return p.offset() - 1, err
}

// odd reports whether the bytes of a string in the document don't say what they are.
func (d *document) odd(quoted []byte) bool {
	return d.escapes && bytes.IndexByte(quoted, '\\') >= 0 || d.spoilt && !utf8.Valid(quoted)
}

// unquoted returns what an odd string says.
func unquoted(quoted []byte) []byte {
	text, _ := jsontext.AppendUnquote(nil, quoted) // which replaces what is no UTF-8, and the decoder knows that all else is right
	return text
}
