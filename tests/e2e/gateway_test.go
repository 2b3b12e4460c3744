//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// TestGateway tests the gateway of examples/federation in front of two subgraphs: the whole program and a small second service.
func TestGateway(t *testing.T) {
	t.Parallel()
	requireNode(t)
	const dir = "examples/federation"
	have, err := os.ReadFile(filepath.Join(dir, "node_modules/.installed.json")) // a copy of package-lock.json
	if err != nil || string(have) != read(t, filepath.Join(dir, "package-lock.json")) {
		tool.Missing(t, "the packages of %s are missing or out of date: run make pages", dir)
	}
	runNodeTest(t, dir, "gateway.test.js", nil, "--federation", "--demo-markets=60")
}

// checkExample checks that a file in examples/federation contains the block.
func (d *docs) checkExample(t *testing.T, b block) {
	files, err := filepath.Glob(filepath.Join(d.root, "examples/federation/*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(read(t, file), strings.TrimSpace(b.text)) {
			return
		}
	}
	t.Errorf("none of the %d files in examples/federation contains the block", len(files))
}
