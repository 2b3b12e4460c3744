package app

import (
	"runtime/debug"
	"testing"

	"oddsgraph/internal/config"
)

func TestCacheBytes(t *testing.T) {
	auto := config.Default().Cache
	explicit := auto
	explicit.Memory, explicit.Responses = 1<<30, 0
	const mib = 1 << 20
	for _, test := range []struct {
		cfg                     config.Cache
		memory, data, responses int64
	}{
		{auto, 480 * mib, 80 * mib, 40 * mib},
		{auto, 64 << 30, 256*mib - 256*mib/3, 256 * mib / 3},
		{explicit, 480 * mib, 1 << 30, 0},
	} {
		if data, responses := cacheBytes(test.cfg, test.memory); data != test.data || responses != test.responses {
			t.Errorf("with %d bytes of memory, the caches have %d and %d bytes, want %d and %d", test.memory, data, responses, test.data, test.responses)
		}
	}
	whole := memory()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(whole / 2))
	if got := memory(); got != whole/2 || whole < 64*mib {
		t.Errorf("the memory is %d bytes, want half of %d", got, whole)
	}
}
