//go:build race

package graphqlws_test

import (
	"testing"

	"oddsgraph/internal/unraced"
)

// TestCost runs the tests of memory and allocations.
func TestCost(t *testing.T) { unraced.Run(t, "^(TestAllocations|TestMemory)$") }
