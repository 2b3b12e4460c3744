package questions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// span is a part of a file: the offset of its first byte, and that of the byte after it.
type span struct{ from, to int }

// places finds the values of a valid JSON text by their paths, such as ".questions[3].legs[0].token".
type places struct {
	data  []byte
	json  *json.Decoder
	spans map[string]span
	twice string // the path of a field that is there twice, or empty
}

// value reads the next value, which has a path.
func (p *places) value(path string) {
	if _, ok := p.spans[path]; ok {
		p.twice = path
	}
	from := int(p.json.InputOffset())
	from += len(p.data[from:]) - len(bytes.TrimLeft(p.data[from:], " \t\r\n,:"))
	t, _ := p.json.Token() // the text is valid
	for i := 0; t == json.Delim('[') && p.json.More(); i++ {
		p.value(fmt.Sprintf("%s[%d]", path, i))
	}
	for t == json.Delim('{') && p.json.More() {
		name, _ := p.json.Token()
		p.value(fmt.Sprintf("%s.%s", path, name))
	}
	if _, ok := t.(json.Delim); ok {
		_, _ = p.json.Token()
	}
	p.spans[path] = span{from, int(p.json.InputOffset())}
}

// errorf returns an error with the place of the value with a path, or of the object without it.
func (p *places) errorf(path, format string, args ...any) error {
	at, found := p.spans[path]
	for of := path; !found && of != ""; at, found = p.spans[of] {
		of = of[:strings.LastIndexByte(of, '.')]
	}
	return errorAt(p.data, at.from, path[1:]+": "+fmt.Sprintf(format, args...))
}

func errorAt(data []byte, offset int, text string) error {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("line %d, column %d: %s", line, column, text)
}
