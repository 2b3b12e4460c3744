package app

import (
	"testing"

	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/config"
)

// TestDefaultLimits compares the default limits of the configuration with the defaults of package limits.
func TestDefaultLimits(t *testing.T) {
	if got := guardLimits(config.Default().Limit); got != limits.Default() {
		t.Errorf("the configuration has %+v, the guard %+v", got, limits.Default())
	}
}
