package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	// releasedFile is the schema of the last release.
	releasedFile = "graph/gen/testdata/released.graphqls"
	// changelogFile lists the changes of the schema. The section about the next release is generated.
	changelogFile = "docs/schema-changelog.md"
)

const changelogHead = `# Schema changelog

<!-- "make generate" makes the section Unreleased from the descriptions in schema.graphqls; changes belong there. -->

Changes of the schema by release. A name such as ` + "`Market.tokens`" + ` or ` + "`Query.tokens(tokenIds:)`" + ` is a
[schema coordinate](https://spec.graphql.org/September2025/#sec-Schema-Coordinates). An item is removed only after a release
in which it was deprecated; the checks fail for any other change that breaks clients. Clients must accept new enum values.
`

const unreleased = "## Unreleased\n"

var titles = [...]string{breaks: "Breaking", removes: "Removed", deprecates: "Deprecated", alters: "Changed", adds: "Added"}

// changelog returns the new text of docs/schema-changelog.md. The parameter old is the present text. changelog copies the sections
// about releases from old.
func changelog(old string, released, now *ast.Schema) string {
	var b strings.Builder
	b.WriteString(changelogHead + "\n" + unreleased)
	section := effect(-1)
	changes := changesOf(released, now)
	for _, c := range changes {
		if c.effect != section {
			section = c.effect
			fmt.Fprintf(&b, "\n### %s\n\n", titles[section])
		}
		separator := " "
		if section == adds {
			separator = ": "
		}
		fmt.Fprintf(&b, "- `%s`%s%s\n", c.coordinate, separator, c.text)
	}
	if len(changes) == 0 {
		b.WriteString("\nNo changes.\n")
	}
	if _, releases, ok := strings.Cut(old, unreleased); ok {
		if i := strings.Index(releases, "\n## "); i >= 0 {
			b.WriteString(releases[i:])
		}
	}
	return b.String()
}

var versions = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// release records the present schema as the schema of a release. It renames the section Unreleased of the changelog to the version
// and the date, and adds a new section Unreleased.
func release(version string, date time.Time) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("%q is no version such as 1.2.3", version)
	}
	text, err := os.ReadFile(changelogFile)
	if err != nil {
		return err
	}
	heading := fmt.Sprintf("%s\nNo changes.\n\n## %s (%s)\n", unreleased, version, date.Format(time.DateOnly))
	if err := os.WriteFile(changelogFile, []byte(strings.Replace(string(text), unreleased, heading, 1)), 0o644); err != nil {
		return err
	}
	schema, err := os.ReadFile(schemaFile)
	if err != nil {
		return err
	}
	return os.WriteFile(releasedFile, schema, 0o644)
}

func load(name string) (*ast.Schema, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return gqlparser.LoadSchema(&ast.Source{Name: schemaFile, Input: string(text)})
}
