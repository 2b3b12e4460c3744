package httpapi

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// params is what a client asks, by whichever transport.
type params struct {
	// Query is the text of the document, "" when only an id is given.
	Query         string
	OperationName string
	// Variables and Extensions are JSON objects, or nil.
	Variables, Extensions json.RawMessage
	// DocumentID names a document that the service knows, "" for none.
	DocumentID string
}

// parseParams reads {query, operationName, variables, extensions, documentId}, where null counts as absent. Other members are
// passed over. A member that comes twice is refused, since parsers disagree about which one counts. The result shares no
// memory with body.
func parseParams(body []byte) (*params, error) {
	if !utf8.Valid(body) {
		return nil, badInput("the request is not UTF-8")
	}
	body = bytes.TrimSpace(body)
	if !json.Valid(body) || body[0] != '{' {
		return nil, badInput("the request is not a JSON object with a query")
	}
	p := &params{}
	seen := map[string]bool{}
	for key, value := range members(body) {
		var name string
		if err := json.Unmarshal(key, &name); err != nil {
			return nil, badInput("the request is not a JSON object with a query")
		}
		var text *string
		var object *json.RawMessage
		switch name {
		case "query":
			text = &p.Query
		case "operationName":
			text = &p.OperationName
		case "documentId":
			text = &p.DocumentID
		case "variables":
			object = &p.Variables
		case "extensions":
			object = &p.Extensions
		default:
			continue
		}
		if seen[name] {
			return nil, badInput("the member %s comes twice", name)
		}
		seen[name] = true
		if string(value) == "null" {
			continue
		}
		switch {
		case text != nil:
			if value[0] != '"' || json.Unmarshal(value, text) != nil {
				return nil, badInput("the member %s is not a string", name)
			}
		case value[0] != '{':
			return nil, badInput("the member %s is not an object", name)
		default:
			*object = bytes.Clone(value)
		}
	}
	return p, nil
}

// members yields the names, in quotes, and values of a JSON object that is known to be valid.
func members(object []byte) func(yield func(key, value []byte) bool) {
	return func(yield func(key, value []byte) bool) {
		rest := bytes.TrimSpace(object[1:])
		for rest[0] != '}' {
			n := valueLength(rest)
			key := rest[:n]
			rest = bytes.TrimSpace(rest[n:])
			rest = bytes.TrimSpace(rest[1:]) // the colon
			n = valueLength(rest)
			if !yield(key, rest[:n]) {
				return
			}
			if rest = bytes.TrimSpace(rest[n:]); rest[0] == ',' {
				rest = bytes.TrimSpace(rest[1:])
			}
		}
	}
}

// valueLength returns the length of the value that valid JSON begins with.
func valueLength(b []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				if inString = false; depth == 0 {
					return i + 1
				}
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i // the end of what a literal is in
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			return i
		}
	}
	return len(b)
}
