package wire

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// maxInterned is the length in bytes of the longest text that is interned.
const maxInterned = 128

// interned holds the interned texts. A text is in the slot of its hash until another text replaces it.
var (
	interned [1 << 14]atomic.Pointer[string]
	seed     = maphash.MakeSeed()
)

// Intern returns a copy of s that equal texts share, unless s is longer than 128 bytes. It is meant for texts that repeat: ids
// of markets and tokens and labels of outcomes, which are in markets, prices and the positions of every wallet. Sharing them
// saves memory and makes most comparisons of equal ids a comparison of pointers. It is safe for concurrent use.
func Intern(s string) string {
	if s == "" || len(s) > maxInterned {
		return s
	}
	return lookUp(s, maphash.String(seed, s))
}

// textOf returns b as a string, interned if intern is set.
func textOf(b []byte, intern bool) string {
	if !intern || len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	return lookUp(b, maphash.Bytes(seed, b))
}

// lookUp returns the text in the slot of hash if it is equal to s. Otherwise it puts a copy of s there and returns the copy.
func lookUp[T string | []byte](s T, hash uint64) string {
	slot := &interned[hash%uint64(len(interned))]
	if known := slot.Load(); known != nil && *known == string(s) {
		return *known
	}
	own := strings.Clone(string(s))
	slot.Store(&own)
	return own
}
