//go:build unix

package e2e

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestCanaryOnDisk checks that the program writes no files. It must also write no secrets into its log and metrics, except the
// secrets in request ids and names of operations.
func TestCanaryOnDisk(t *testing.T) {
	t.Parallel()
	p := runProgram(t, "--demo-markets=20", "--log-level=debug")
	var secrets []string
	for _, place := range canaryPlaces() {
		secret := newCanary()
		place.send(t, p.service, secret)
		if place.name != "a request id" && !place.named {
			secrets = append(secrets, secret)
		}
		own := credentials("demo-3", "note", secret)
		p.do(t, p.request(t, asJSON(vars{"query": strings.ReplaceAll(everything, addressOfAny, addressOf3)}), own))
	}
	for _, secret := range secrets {
		p.search(t, secret)
	}
	if log := p.log.String(); !strings.Contains(log, `"level":"DEBUG"`) {
		t.Error("the log has no lines of the level DEBUG")
	}
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if path != p.dir {
			t.Errorf("the program has written %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
