//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	markdown "github.com/yuin/goldmark/ast"
)

// TestDocsLinks checks that the link targets, variables, metrics and make targets in the Markdown files exist.
func TestDocsLinks(t *testing.T) {
	verbs := regexp.MustCompile("`make ([a-z]+)")
	makefile := read(t, "Makefile")
	metrics := regexp.MustCompile(`\boddsgraph_[a-z0-9_]*[a-z0-9]\b`)
	sources, err := filepath.Glob("internal/telemetry/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("error %v; found %d files in internal/telemetry", err, len(sources))
	}
	telemetry := ""
	for _, file := range append(sources, "app/metrics.go", "app/metrics_shared.go") {
		telemetry += read(t, file)
	}
	known := anchors{}
	for _, file := range markdownFiles(t) {
		t.Run(file, func(t *testing.T) {
			content := read(t, file)
			checkSettings(t, content)
			for _, m := range verbs.FindAllStringSubmatch(content, -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("the Makefile has no target %s", m[1])
				}
			}
			for _, name := range metrics.FindAllString(content, -1) {
				if !strings.Contains(telemetry, `"`+name+`"`) {
					t.Errorf("there is no metric %s", name)
				}
			}
			_ = markdown.Walk(parseMarkdown([]byte(content)), func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
				if !entering {
					return markdown.WalkContinue, nil
				}
				switch n := n.(type) {
				case *markdown.Link:
					known.checkLink(t, file, string(n.Destination))
				case *markdown.Image:
					known.checkLink(t, file, string(n.Destination))
				}
				return markdown.WalkContinue, nil
			})
		})
	}
}

// anchors maps each file to the anchors that GitHub generates for its headings.
type anchors map[string]map[string]bool

// checkLink fails if the file or heading of a link does not exist. It does not check links to other sites.
func (a anchors) checkLink(t *testing.T, from, link string) {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return
	}
	path, anchor, _ := strings.Cut(link, "#")
	target := from
	if path != "" {
		target = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("the file of the link %s does not exist: %v", link, err)
		return
	}
	if anchor != "" && !a.ofFile(t, target)[anchor] {
		t.Errorf("the heading of the link %s does not exist", link)
	}
}

func (a anchors) ofFile(t *testing.T, file string) map[string]bool {
	t.Helper()
	if a[file] != nil {
		return a[file]
	}
	a[file] = map[string]bool{}
	content := []byte(read(t, file))
	_ = markdown.Walk(parseMarkdown(content), func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
		if heading, ok := n.(*markdown.Heading); ok && entering {
			a[file][anchorOf(string(linesOf(heading, content)))] = true
		}
		return markdown.WalkContinue, nil
	})
	return a[file]
}

// droppedInAnchor matches the characters that GitHub drops from an anchor.
var droppedInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf returns the anchor that GitHub generates for a heading.
func anchorOf(heading string) string {
	heading = droppedInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(heading, " ", "-")
}
