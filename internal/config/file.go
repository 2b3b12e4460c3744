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

const maxFile = 64 << 10

// loadFile adds the values of the configuration file to p.values, and its errors to p.problems. Later calls of loadFile do nothing.
func (p *parser) loadFile(ctx *kong.Context) {
	if p.loaded {
		return
	}
	p.loaded = true
	flag := flagOf(ctx.Kong, "config")
	path := p.values[variable(flag.Name)].value
	if slices.ContainsFunc(ctx.Path, func(given *kong.Path) bool { return given.Flag == flag }) {
		path, _ = ctx.FlagValue(flag).(string)
	} else if path != "" {
		p.origins[flag.Name] = environment
	}
	if path == "" {
		return
	}
	text, err := readFile(path)
	if err != nil {
		p.report(flag.Value, path, err, "the path of a file that can be read")
		return
	}
	p.addLines(path, text, keys(ctx.Kong))
}

// addLines adds the values in the text of a configuration file to p.values, and its errors to p.problems. known contains the names of
// all variables without the prefix.
func (p *parser) addLines(path, text string, known []string) {
	seen := map[string]bool{}
	for i, entry := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		entry = strings.TrimSpace(entry)
		if entry == "" || entry[0] == '#' {
			continue
		}
		place := fmt.Sprintf("%s:%d", path, i+1)
		name, value, assigns := strings.Cut(entry, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		err := checkLine(name, assigns, known)
		if err == nil && seen[name] {
			err = fmt.Errorf("%s is present twice", name)
		}
		if err != nil {
			p.problems = append(p.problems, fmt.Errorf("%s: %w", place, err))
			continue
		}
		seen[name] = true
		if _, set := p.values[name]; !set && value != "" {
			p.values[name] = given{value, place}
		}
	}
}

// checkLine returns an error if a line of a configuration file is invalid. name is the text before the first "=", if the line assigns.
// known contains the names of all variables without the prefix.
func checkLine(name string, assigns bool, known []string) error {
	key, ours := strings.CutPrefix(name, prefix)
	switch {
	case !assigns || !ours: // the error does not quote the line, because the line may be part of a secret of several lines
		return fmt.Errorf("want a variable and its value, such as %[1]sLOG_LEVEL=info, or a # and a comment; the file has only variables that begin with %[1]s, so set others, such as OTEL_* and GOMEMLIMIT, in the environment", prefix)
	case name == variable("config"):
		return fmt.Errorf("%s names a file of settings and cannot be set in such a file", name)
	case !slices.Contains(known, key):
		return unknown(key, known)
	}
	return nil
}

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
