//go:build race

package httpapi

import (
	"testing"

	"oddsgraph/internal/unraced"
)

// TestCost runs the tests of memory and allocations.
func TestCost(t *testing.T) { unraced.Run(t, "^TestAHitAllocatesLittle$") }
