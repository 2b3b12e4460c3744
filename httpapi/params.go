package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

type params struct {
	// Query is the text of the document, or "" if the request has only an id.
	Query         string
	OperationName string
	// Variables are a JSON object, or "".
	Variables string
	// Extensions are a JSON object, or nil.
	Extensions json.RawMessage
	// DocumentID is the id of a trusted or persisted document, or "".
	DocumentID string

	// hasQuery is true if the JSON text of the request contains a query, even if the query is empty.
	hasQuery bool
}

// namesDocument reports whether the request contains a query, a document id, or persistedQuery in its extensions.
func (p *params) namesDocument() bool {
	if p.hasQuery || p.DocumentID != "" {
		return true
	}
	var extensions struct {
		PersistedQuery json.RawMessage `json:"persistedQuery"`
	}
	return json.Unmarshal(p.Extensions, &extensions) == nil && len(extensions.PersistedQuery) > 0 && string(extensions.PersistedQuery) != "null"
}

// parseParams parses {query, operationName, variables, extensions, documentId}. A member that is null counts as absent. Unknown
// members are ignored. A repeated known member is an error, because some parsers use the first value and others use the last value.
// The result shares no memory with body. Every error is a market.Error.
func parseParams(body []byte) (*params, error) {
	if !utf8.Valid(body) {
		return nil, badInput("the request is not UTF-8")
	}
	r, _ := jsonReaders.Get().(*jsonReader)
	defer r.release()
	r.begin(body)
	p := &params{}
	wrong, ok := p.read(r)
	if !ok {
		return nil, badInput("the request is not a JSON object with a query")
	}
	if wrong != nil {
		return nil, wrong
	}
	return p, nil
}

// read reads all members. wrong is the error of the first invalid member, or nil. ok is false if the text is not a JSON object.
func (p *params) read(r *jsonReader) (wrong error, ok bool) {
	if start, err := r.ReadToken(); err != nil || start.Kind() != '{' {
		return nil, false
	}
	var seen [otherMember]bool
	for r.PeekKind() != '}' {
		name, err := r.ReadValue()
		if err != nil {
			return nil, false
		}
		m := memberOf(name)
		value, err := r.ReadValue()
		switch {
		case err != nil:
			return nil, false
		case m == otherMember || wrong != nil:
		case seen[m]:
			wrong = badInput("the member %s is present twice", memberNames[m])
		default:
			seen[m] = true
			wrong = p.take(m, value)
		}
	}
	_, _ = r.ReadToken() // the brace
	_, err := r.ReadToken()
	return wrong, err == io.EOF
}

type member uint8

const (
	memberQuery member = iota
	memberOperationName
	memberDocumentID
	memberVariables
	memberExtensions
	otherMember
)

var memberNames = [otherMember]string{"query", "operationName", "documentId", "variables", "extensions"}

// memberOf returns the member with a name, or otherMember for an unknown name. quoted is the name as a JSON string with its quotes.
func memberOf(quoted jsontext.Value) member {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = jsontext.Value(unquote(quoted))
	}
	for m, known := range memberNames {
		if string(name) == known {
			return member(m)
		}
	}
	return otherMember
}

// take stores the value of a member. It ignores null.
func (p *params) take(m member, value jsontext.Value) error {
	kind := value.Kind()
	switch {
	case kind == 'n':
	case m == memberVariables || m == memberExtensions:
		if kind != '{' {
			return badInput("the member %s is not an object", memberNames[m])
		}
		if m == memberVariables {
			p.Variables = string(value)
		} else {
			p.Extensions = bytes.Clone(value)
		}
	case kind != '"':
		return badInput("the member %s is not a string", memberNames[m])
	case m == memberOperationName:
		p.OperationName = unquote(value)
	case m == memberDocumentID:
		p.DocumentID = unquote(value)
	default:
		p.Query, p.hasQuery = unquote(value), true
	}
	return nil
}

func unquote(quoted jsontext.Value) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var buffer [1024]byte                                 // on the stack; large enough for most documents
	text, _ := jsontext.AppendUnquote(buffer[:0], quoted) // the only possible error is an unpaired surrogate, which becomes U+FFFD
	return string(text)
}

// jsonReader is a reusable decoder of JSON texts.
type jsonReader struct {
	jsontext.Decoder
	text bytes.Buffer
}

var jsonReaders = sync.Pool{New: func() any { return &jsonReader{} }}

// Like encoding/json, the reader accepts repeated names and unpaired surrogates. params.read refuses repeated known members.
var allowRepeatedNames, allowSurrogates = jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)

// begin starts reading a text. The text must not change until the next begin or release.
func (r *jsonReader) begin(text []byte) {
	r.text = *bytes.NewBuffer(text)
	r.Reset(&r.text, allowRepeatedNames, allowSurrogates)
}

// release drops the text and returns the reader to the pool.
func (r *jsonReader) release() {
	r.begin(nil)
	jsonReaders.Put(r)
}
