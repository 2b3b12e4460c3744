package tool

import (
	"fmt"
	"os"
	"testing"
)

// tier returns which tests to run: 0 those of make test, 1 also those of make check, 2 also those of make nightly.
func tier() int {
	switch value := os.Getenv("TIER"); value {
	case "":
		return 0
	case "check":
		return 1
	case "nightly":
		return 2
	default:
		panic(fmt.Sprintf("TIER=%s: want check, nightly or nothing", value))
	}
}

// CheckTier skips a test that make test leaves to make check, because the test runs browsers, other programs or a load.
func CheckTier(t testing.TB) {
	t.Helper()
	if tier() < 1 {
		t.Skip("make check runs this test: TIER=check")
	}
}

// NightlyTier skips a test that takes minutes of real time. make nightly runs it.
func NightlyTier(t testing.TB) {
	t.Helper()
	if tier() < 2 {
		t.Skip("make nightly runs this test: TIER=nightly")
	}
}

// Nightly reports whether the tests of make nightly run, so that a test may try more.
func Nightly() bool { return tier() == 2 }
