package app

import (
	"testing"

	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/config"
)

// TestDefaultLimits compares the defaults of the configuration with those of package limits.
func TestDefaultLimits(t *testing.T) {
	if got := guardLimits(config.Default().Limit); got != limits.Default() {
		t.Errorf("the configuration has %+v, the guard %+v", got, limits.Default())
	}
}
