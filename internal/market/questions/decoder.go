package questions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields are the functions that read the members of an object.
type fields map[string]func() error

// decoder reads a JSON text. Its errors have a position.
type decoder struct {
	data []byte
	json *json.Decoder
	// path leads to the value that is read. at is the offset of the value, and of the object after the members of an object.
	path []string
	at   int
}

func newDecoder(data []byte) *decoder {
	d := &decoder{data: data, json: json.NewDecoder(bytes.NewReader(data))}
	d.json.UseNumber()
	return d
}

// errorf returns an error with the position of the value that was read last.
func (d *decoder) errorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(d.path) > 0 {
		text = strings.TrimPrefix(strings.Join(d.path, ""), ".") + ": " + text
	}
	return d.errorAt(d.at, text)
}

func (d *decoder) errorAt(offset int, text string) error {
	before := d.data[:min(offset, len(d.data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("line %d, column %d: %s", line, column, text)
}

// token returns the next token, and sets at to its offset.
func (d *decoder) token() (json.Token, error) {
	d.at = int(d.json.InputOffset())
	d.at += len(d.data[d.at:]) - len(bytes.TrimLeft(d.data[d.at:], " \t\r\n,:"))
	t, err := d.json.Token()
	switch syntax, ok := errors.AsType[*json.SyntaxError](err); {
	case ok:
		return nil, d.errorAt(max(int(syntax.Offset)-1, d.at), "it is not JSON")
	case err != nil:
		return nil, d.errorAt(len(d.data), "it is not JSON: it ends too early")
	}
	return t, nil
}

// end returns an error unless the text ends here.
func (d *decoder) end() error {
	if _, err := d.json.Token(); err != io.EOF {
		return d.errorAt(int(d.json.InputOffset()), "it is not JSON: there is something after its end")
	}
	return nil
}

// object reads an object with the given members, of which some are required.
func (d *decoder) object(members fields, required ...string) error {
	t, err := d.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return d.errorf("must be an object")
	}
	at, depth := d.at, len(d.path)
	seen := make(map[string]bool, len(members))
	for d.json.More() {
		t, err := d.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		d.path = append(d.path, "."+name)
		read, known := members[name]
		switch {
		case !known:
			return d.errorf("there is no such field; the fields are %s", strings.Join(slices.Sorted(maps.Keys(members)), ", "))
		case seen[name]:
			return d.errorf("is there twice")
		}
		seen[name] = true
		if err := read(); err != nil {
			return err
		}
		d.path = d.path[:depth]
	}
	if _, err := d.token(); err != nil {
		return err
	}
	d.at = at
	for _, name := range required {
		if !seen[name] {
			return d.errorf("has no field %s", name)
		}
	}
	return nil
}

// list reads a list of at most the given length. read reads an element.
func (d *decoder) list(most int, read func() error) error {
	t, err := d.token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		return d.errorf("must be a list")
	}
	depth := len(d.path)
	for i := 0; d.json.More(); i++ {
		if i == most {
			return d.errorf("has more than %d elements", most)
		}
		d.path = append(d.path, "["+strconv.Itoa(i)+"]")
		if err := read(); err != nil {
			return err
		}
		d.path = d.path[:depth]
	}
	_, err = d.token()
	return err
}

func (d *decoder) string() (string, error) {
	t, err := d.token()
	if err != nil {
		return "", err
	}
	text, ok := t.(string)
	if !ok {
		return "", d.errorf("must be a text")
	}
	return text, nil
}
