package app

import (
	"testing"

	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/config"
)

// TestDefaultLimits holds the defaults of the configuration against those of the guard.
func TestDefaultLimits(t *testing.T) {
	if got := guardLimits(config.Default().Limit); got != limits.Default() {
		t.Errorf("the configuration has %+v, the guard %+v", got, limits.Default())
	}
}
