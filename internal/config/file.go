package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// maxFile is the maximum size of a configuration file in bytes.
const maxFile = 64 << 10

// line is a line NAME=value of a configuration file.
type line struct {
	number      int
	name, value string
}

// file is a configuration file.
type file struct {
	path  string
	lines []line
}

// place returns the position of a line in the form path:number.
func (f *file) place(l line) string { return fmt.Sprintf("%s:%d", f.path, l.number) }

// lookup returns the first line that sets a variable. It returns false if no line sets the variable or the value is empty.
func (f *file) lookup(name string) (line, bool) {
	i := slices.IndexFunc(f.lines, func(l line) bool { return l.name == name })
	if i < 0 || f.lines[i].value == "" {
		return line{}, false
	}
	return f.lines[i], true
}

// loadFile reads the configuration file. It adds errors to p.problems. Later calls of loadFile do nothing.
func (p *parser) loadFile(ctx *kong.Context) {
	if p.file != nil {
		return
	}
	p.file = &file{}
	flag := flagOf(ctx.Kong, "config")
	path := p.values[variable(flag.Name)]
	if slices.ContainsFunc(ctx.Path, func(given *kong.Path) bool { return given.Flag == flag }) {
		path, _ = ctx.FlagValue(flag).(string)
	} else {
		p.origins[flag.Value] = environment
	}
	if path == "" {
		return
	}
	p.file.path = path
	text, err := readFile(path)
	if err != nil {
		p.report(flag.Value, path, err, "the path of a file that can be read")
		return
	}
	known := keys(ctx.Kong)
	for i, entry := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		entry = strings.TrimSpace(entry)
		if entry == "" || entry[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		l := line{i + 1, strings.TrimSpace(name), strings.TrimSpace(value)}
		if err := p.file.check(l, ok, known); err != nil {
			p.problems = append(p.problems, fmt.Errorf("%s: %w", p.file.place(l), err))
			continue
		}
		p.file.lines = append(p.file.lines, l)
	}
}

// check returns an error if l is invalid. assigns reports whether the line contains "=". known contains the names of all variables
// without the prefix.
func (f *file) check(l line, assigns bool, known []string) error {
	key, ours := strings.CutPrefix(l.name, prefix)
	switch {
	case !assigns || !ours: // the error does not quote the line, because the line may be part of a secret of several lines
		return fmt.Errorf("want a variable and its value, such as %[1]sLOG_LEVEL=info, or a # and a comment; the file has only variables that begin with %[1]s, so set others, such as OTEL_* and GOMEMLIMIT, in the environment", prefix)
	case l.name == variable("config"):
		return fmt.Errorf("%s names a file of settings and cannot be set in such a file", l.name)
	case !slices.Contains(known, key):
		return unknown(key, known)
	case slices.ContainsFunc(f.lines, func(other line) bool { return other.name == l.name }):
		return fmt.Errorf("%s is present twice", l.name)
	}
	return nil
}

// readFile returns the text of a file of at most maxFile bytes.
func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		var pathErr *fs.PathError // remove the path from the error, because the caller adds it
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", errors.New("cannot be read")
	case len(text) > maxFile:
		return "", fmt.Errorf("is larger than %d bytes", maxFile)
	}
	return string(text), nil
}
