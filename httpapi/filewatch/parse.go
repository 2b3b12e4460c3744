package filewatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// check returns an error if content is not JSON in UTF-8. The error may contain a position. It never quotes the content, which
// may be secret.
func check(content []byte) error {
	if !utf8.Valid(content) {
		return errors.New("it is not UTF-8")
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return errors.New("it is empty")
	}
	var raw json.RawMessage
	err := json.Unmarshal(content, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := content[:min(max(int(syntax.Offset)-1, 0), len(content))]
		line := bytes.Count(before, []byte("\n")) + 1
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		return fmt.Errorf("it is not JSON: line %d, column %d", line, column)
	}
	if err != nil {
		return errors.New("it is not JSON")
	}
	return nil
}

// Members calls visit for every member of a JSON object in order, even if a name is repeated. It stops at the first error of
// visit, and returns that error. If object is not a JSON object, the error does not quote it.
func Members(object []byte, visit func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("must be an object")
	}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return errors.New("must be an object")
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Elements calls visit for every element of a JSON array in order. It stops at the first error of visit, and returns that
// error. If array is not a JSON array, the error does not quote it.
func Elements(array []byte, visit func(i int, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(array))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.New("must be a list")
	}
	for i := 0; dec.More(); i++ {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errors.New("must be a list")
		}
		if err := visit(i, value); err != nil {
			return err
		}
	}
	return nil
}

// Text decodes a JSON string. ok is false if value is not a string.
func Text(value json.RawMessage) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(value, &s)
	return s, err == nil
}
