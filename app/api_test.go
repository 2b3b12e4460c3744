package app

import (
	"testing"

	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/config"
)

// TestDefaultLimits compares the default limits of the configuration with the defaults of package limits.
func TestDefaultLimits(t *testing.T) {
	if got := guardLimits(config.Default().Limit); got != limits.Default() {
		t.Errorf("the default limits are %+v in the configuration and %+v in package limits, want equal limits", got, limits.Default())
	}
}
