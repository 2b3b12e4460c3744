package config

import (
	"fmt"
	"io"
	"strings"
)

const referenceHead = `# Configuration

<!-- Made from internal/config by "make generate"; changes belong there. -->

oddsgraph is configured by flags, by environment variables of the same words, and by a file of these variables that
` + "`--config`" + ` names, one ` + "`NAME=value`" + ` a line, with comments after a ` + "`#`" + ` that begins a line. A flag wins over the environment,
the environment over the file, the file over the default; an empty variable counts as unset. All values are checked
together at the start: one message lists everything that is wrong, and a variable that begins with ` + "`" + prefix + "`" + ` and has no
meaning is an error too. [Operations](operations.md) says how to check a configuration before it is used, and what SIGHUP
reads again.

` + "```text" + `
oddsgraph [command] [flags]
` + "```" + `

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
	for _, c := range k.Model.Leaves(true) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Path(), c.Help)
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
