package app

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain runs the tests in the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// write writes a file with mode 0600 and returns its path.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
