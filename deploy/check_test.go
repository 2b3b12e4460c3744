package deploy

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"oddsgraph/app"
)

// TestFilesPassCheck checks that config check accepts each shipped file of settings.
func TestFilesPassCheck(t *testing.T) {
	files, err := filepath.Glob("*/*.env")
	if err != nil || len(files) < 3 {
		t.Fatalf("got the files %v and the error %v, want at least 3 files", files, err)
	}
	for _, file := range files {
		var out bytes.Buffer
		if err := app.Run(t.Context(), "", []string{"config", "check", "--config=" + file}, nil, &out, io.Discard); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
