package config

import (
	"fmt"
	"io"
	"strings"
)

const referenceHead = `# Configuration

<!-- Made from internal/config by "make generate"; changes belong there. -->

oddsgraph is configured by flags, by environment variables with the same words, and by a file of these variables that
` + "`--config`" + ` names. The file has one ` + "`NAME=value`" + ` on each line; a line that begins with ` + "`#`" + ` is a comment. A flag overrides
the environment, the environment overrides the file, and the file overrides the default. An empty variable counts as unset.

The service checks all values together at the start. One message lists all errors. An unknown variable that begins with
` + "`" + prefix + "`" + ` is an error too. [Operations](operations.md) shows how to check a configuration before you use it, and what SIGHUP
reads again.

` + "```text" + `
oddsgraph [command] [flags]
` + "```" + `

| Command | Meaning |
|---|---|
`

// Reference writes the text of docs/configuration.md: all commands with their own flags, and all settings.
func Reference(w io.Writer) error {
	k := newParser(nil, io.Discard).kong(&grammar{})
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, c := range k.Model.Leaves(true) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Path(), c.Help)
		for _, f := range c.Flags {
			fmt.Fprintf(&b, "| `%s --%s` | %s |\n", c.Path(), f.Name, f.Help)
		}
	}
	group := ""
	for _, f := range flags(k) {
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
	_, err := io.WriteString(w, b.String())
	return err
}
