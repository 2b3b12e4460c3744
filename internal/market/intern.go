package market

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// maxInterned is the length in bytes of the longest text that is interned.
const maxInterned = 128

// interned contains the interned texts. The hash of a text selects its index. A text stays at its index until another text with the
// same index replaces it.
var (
	interned [1 << 14]atomic.Pointer[string]
	seed     = maphash.MakeSeed()
)

// Intern returns a string equal to s. The results for equal strings usually share memory. Intern returns a string longer than 128
// bytes unchanged. Intern is meant for texts that repeat, such as the ids of markets and tokens in the positions of many wallets.
// Interning saves memory, and a comparison of equal ids usually compares only pointers. Intern is safe for concurrent use.
func Intern[T string | []byte](s T) string {
	if len(s) == 0 || len(s) > maxInterned {
		return string(s)
	}
	slot := &interned[hashOf(s)%uint64(len(interned))]
	if known := slot.Load(); known != nil && *known == string(s) {
		return *known
	}
	own := strings.Clone(string(s))
	slot.Store(&own)
	return own
}

func hashOf[T string | []byte](s T) uint64 {
	if b, ok := any(s).([]byte); ok {
		return maphash.Bytes(seed, b)
	}
	return maphash.String(seed, string(s))
}
