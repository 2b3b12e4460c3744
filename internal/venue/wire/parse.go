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

// MaxValues bounds the number of values inside the outermost value of a document. This bound protects memory, because the node of a
// value can be many times larger than the text of the value.
const MaxValues = 500_000

// The errors of Parse.
var (
	ErrEmpty     = errors.New("the body is empty")
	ErrTooMany   = errors.New("the body has too many values")
	ErrTruncated = errors.New("the body ends in the middle of its JSON")
	ErrSyntax    = errors.New("the body is not JSON")
	ErrTrailing  = errors.New("the body is more than one JSON value")
)

// Parse accepts several members with the same name, and bytes that are not UTF-8. Such bytes are read as U+FFFD.
var duplicateNames, invalidUTF8 = jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)

// Parse reads b as one JSON value. A byte order mark at the start is ignored. If b has more than MaxValues commas, opening brackets
// and opening braces in total, Parse returns ErrTooMany. The result shares memory with b, so the calling function must not change b
// afterwards. The error is one of the errors above.
func Parse(b []byte) (Value, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return Value{}, ErrEmpty
	}
	// Every value except the outermost value follows a comma, or is the first value in a list or object. The count is therefore at
	// least the number of these values. It is greater if strings contain these characters, or if lists or objects are empty.
	inside := bytes.Count(b, []byte{','}) + bytes.Count(b, []byte{'['}) + bytes.Count(b, []byte{'{'})
	if inside > MaxValues || uint64(len(b)) > math.MaxUint32 {
		return Value{}, ErrTooMany
	}
	p := parsers.Get().(*parser)
	defer p.release()
	p.text = *bytes.NewBuffer(b)
	p.in.Reset(&p.text, duplicateNames, invalidUTF8)
	p.document = document{
		text: b, nodes: make([]node, 0, 1+inside),
		hasEscapes: bytes.IndexByte(b, '\\') >= 0, invalidUTF8: !utf8.Valid(b),
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

// parsers is a pool, because the decoder of a parser needs more memory than most documents.
var parsers = sync.Pool{New: func() any { return new(parser) }}

type parser struct {
	in   jsontext.Decoder
	text bytes.Buffer
	document
}

func (p *parser) release() {
	p.text, p.document = bytes.Buffer{}, document{}
	p.in.Reset(&p.text)
	parsers.Put(p)
}

func (p *parser) offset() uint32 { return uint32(p.in.InputOffset()) }

// value reads the next value. It appends a node for the value and for each value inside the value. If the value is a member of an
// object, n contains the position of the member's name.
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

func (p *parser) member() error {
	name, err := p.in.ReadValue()
	if err != nil {
		return err
	}
	return p.value(node{name: p.offset() - uint32(len(name)), nameEnd: p.offset(), escaped: p.escaped(name)})
}

func (p *parser) delimiter() (at uint32, err error) {
	_, err = p.in.ReadToken()
	return p.offset() - 1, err
}

// escaped reports whether a quoted string of the document differs from its decoded form.
func (d *document) escaped(quoted []byte) bool {
	return d.hasEscapes && bytes.IndexByte(quoted, '\\') >= 0 || d.invalidUTF8 && !utf8.Valid(quoted)
}

// unquote decodes a quoted string and replaces invalid UTF-8 by U+FFFD. No other error is possible, because the decoder has already
// checked the syntax of the string.
func unquote(quoted []byte) []byte {
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}
