package config

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

type setting struct {
	flag  *kong.Flag
	value any
	text  string
}

// settings returns the settings of c in the order of their declaration. The texts of URLs are redacted.
func settings(c Config) []setting {
	var list []setting
	for _, f := range flags(newParser(nil, io.Discard).kong(&grammar{Config: c})) {
		value := f.Target.Interface()
		text := fmt.Sprint(value)
		switch v := value.(type) {
		case slog.Level:
			text = strings.ToLower(v.String())
		case string:
			if isURL(f.Value) {
				text = redactURL(v)
			}
		}
		list = append(list, setting{f, value, text})
	}
	return list
}

var defaults = sync.OnceValue(func() []setting { return settings(Default()) })

// String returns every value as variable=value, one on each line, without user info and queries of URLs.
func (c Config) String() string {
	var b strings.Builder
	for _, s := range settings(c) {
		fmt.Fprintf(&b, "%s=%s\n", variable(s.flag.Name), s.text)
	}
	return b.String()
}

// GoString returns String, because %#v would print URLs without redaction.
func (c Config) GoString() string { return c.String() }

// LogValue returns the values that differ from their defaults, by flag, without user info and queries of URLs.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for i, s := range settings(c) {
		if s.text != defaults()[i].text {
			attrs = append(attrs, slog.String(s.flag.Name, s.text))
		}
	}
	return slog.GroupValue(attrs...)
}

// Show writes a table of every flag with its value and source, and those of each further venue, without user info and queries of URLs.
func (c Config) Show(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tFROM")
	for _, config := range append([]*Config{&c}, c.More...) {
		for _, s := range settings(*config) {
			name := "--" + s.flag.Name
			if config.Venue.Name != "" {
				if !ofVenue(variable(s.flag.Name)) {
					continue
				}
				name = config.Venue.Name + " " + variable(s.flag.Name)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\n", name, s.text, cmp.Or(config.origins[s.flag.Name], "default"))
		}
	}
	return table.Flush()
}

// Differences returns the names of the flags that have different values in c and in other.
func (c Config) Differences(other Config) []string {
	var names []string
	theirs := settings(other)
	for i, s := range settings(c) {
		if !reflect.DeepEqual(s.value, theirs[i].value) {
			names = append(names, s.flag.Name)
		}
	}
	return names
}

// Default returns the Config of CommandServe without any flag or variable.
func Default() Config {
	c, err := Parse(nil, nil, io.Discard)
	if err != nil {
		panic("config: a default is wrong: " + err.Error()) // cannot happen: a test parses all defaults
	}
	return *c
}

// takes describes the valid values of v for --help and docs/configuration.md.
func takes(v *kong.Value) string {
	return v.Mapper.(interface{ describe(tag *kong.Tag) string }).describe(v.Tag)
}
