package wire

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
func Intern(s string) string {
	if s == "" || len(s) > maxInterned {
		return s
	}
	return loadOrStore(s, maphash.String(seed, s))
}

// textOf returns b as a string. If intern is true, textOf interns the string; see Intern.
func textOf(b []byte, intern bool) string {
	if !intern || len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	return loadOrStore(b, maphash.Bytes(seed, b))
}

// loadOrStore returns the text at the index that the hash of s selects, if this text equals s. If there is no text at the index, or
// another text, loadOrStore stores a copy of s there and returns the copy.
func loadOrStore[T string | []byte](s T, hash uint64) string {
	slot := &interned[hash%uint64(len(interned))]
	if known := slot.Load(); known != nil && *known == string(s) {
		return *known
	}
	own := strings.Clone(string(s))
	slot.Store(&own)
	return own
}
