package config

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"
)

// setting is one value of a Config as it may be shown.
type setting struct {
	flag  *kong.Flag
	value string
}

// settings lists c in the order of its declaration, URLs redacted.
func settings(c Config) []setting {
	p := newParser(nil, io.Discard)
	k, err := p.kong(&grammar{Config: c})
	if err != nil {
		panic("config: the struct tags are wrong: " + err.Error()) // parsing would have failed first
	}
	var list []setting
	for _, f := range k.Model.Flags {
		if f.Name == "help" {
			continue
		}
		value := fmt.Sprint(f.Target.Interface())
		switch v := f.Target.Interface().(type) {
		case slog.Level:
			value = strings.ToLower(v.String())
		case string:
			if isURL(f.Value) {
				value = redactURL(v)
			}
		}
		list = append(list, setting{f, value})
	}
	return list
}

// String lists every value as variable=value, one a line, without user info and queries of URLs.
func (c Config) String() string {
	var b strings.Builder
	for _, s := range settings(c) {
		fmt.Fprintf(&b, "%s=%s\n", variable(s.flag.Name), s.value)
	}
	return b.String()
}

// GoString is String: %#v shows no more than %v does.
func (c Config) GoString() string { return c.String() }

// LogValue is the group of the values that differ from their defaults, by flag, without user info and queries of URLs.
func (c Config) LogValue() slog.Value {
	defaults := settings(Default())
	var attrs []slog.Attr
	for i, s := range settings(c) {
		if s.value != defaults[i].value {
			attrs = append(attrs, slog.String(s.flag.Name, s.value))
		}
	}
	return slog.GroupValue(attrs...)
}

// Default returns the Config of CommandServe without any flag or variable.
func Default() Config {
	c, err := Parse(nil, nil, io.Discard)
	if err != nil {
		panic("config: a default is wrong: " + err.Error()) // a test reads them all
	}
	return *c
}

const referenceHead = `# Configuration

<!-- Made from internal/config by "make generate"; changes belong there. -->

oddsgraph is configured by flags and by environment variables of the same words. A flag wins over its variable, a
variable over the default; an empty variable counts as unset. All values are checked together at the start: one message
lists everything that is wrong, and a variable that begins with ` + "`" + prefix + "`" + ` and has no meaning is an error too.

    oddsgraph [command] [flags]

| Command | Meaning |
|---|---|
`

// Reference writes docs/configuration.md: every command, and every flag with its variable, default, values and meaning.
func Reference(w io.Writer) error {
	p := newParser(nil, io.Discard)
	k, err := p.kong(&grammar{})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, c := range k.Model.Children {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, c.Help)
	}
	group := ""
	for _, f := range k.Model.Flags {
		if f.Name == "help" {
			continue
		}
		if f.Group.Title != group {
			group = f.Group.Title
			fmt.Fprintf(&b, "\n## %s\n\n| Flag | Variable | Default | Values | Meaning |\n|---|---|---|---|---|\n", group)
		}
		value := "(empty)"
		if f.Default != "" {
			value = "`" + f.Default + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s | %s |\n", f.Name, variable(f.Name), value, takes(f.Value), f.Help)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// takes says which texts v takes.
func takes(v *kong.Value) string {
	switch m := v.Mapper.(type) {
	case decoder:
		return m.takes(v.Tag)
	case boolDecoder:
		return m.takes(v.Tag)
	}
	panic("config: --" + v.Name + " has no check") // a test writes the whole reference
}
