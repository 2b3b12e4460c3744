//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// TestHangup checks that SIGHUP changes the log level without a restart. If the configuration file is invalid, the program must log
// the error, keep its log level, and continue to run.
func TestHangup(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=info\nODDSGRAPH_DEMO_MARKETS=20")
	p := runProgram(t, "--config="+file)
	hangup := func(wants ...string) {
		t.Helper()
		before := len(p.log.String())
		if err := p.process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			eventually(t, "the log contains "+want, func() bool { return strings.Contains(p.log.String()[before:], want) })
		}
	}
	write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=debug\nODDSGRAPH_DEMO_MARKETS=20")
	hangup(`"log_level":"DEBUG"`)
	write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=loud\nODDSGRAPH_DEMO_MARKETS=20")
	hangup("oddsgraph.env:1: ODDSGRAPH_LOG_LEVEL", `"log_level":"DEBUG"`)
	p.ask(t, `{ __typename }`, nil, anonymous)
	p.terminate(t)
	p.wantExit(t, 0)
}
