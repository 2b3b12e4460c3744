package wire

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// maxInterned is the length in bytes of the longest text that is interned.
const maxInterned = 128

// interned are texts in the slots that their hashes name. Each stays until another text takes its slot.
var (
	interned [1 << 14]atomic.Pointer[string]
	seed     = maphash.MakeSeed()
)

// Intern returns a text equal to s, in memory that it shares with those that were interned lately. It is for what comes again
// and again: the ids of markets and tokens and the labels of outcomes, which stand in markets, prices and every wallet's
// positions. So what is held takes less memory, more of it is near the processor, and comparing two ids mostly ends where
// they are found to be in one place. It is safe for concurrent use.
func Intern(s string) string {
	if s == "" || len(s) > maxInterned {
		return s
	}
	return lately(s, maphash.String(seed, s))
}

// textOf returns the text that is in b, as Intern does if it is to be shared.
func textOf(b []byte, shared bool) string {
	if !shared || len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	return lately(b, maphash.Bytes(seed, b))
}

// lately returns the text of its slot if it is equal to s, else a copy of s, which takes the slot.
func lately[T string | []byte](s T, hash uint64) string {
	slot := &interned[hash%uint64(len(interned))]
	if known := slot.Load(); known != nil && *known == string(s) {
		return *known
	}
	own := strings.Clone(string(s))
	slot.Store(&own)
	return own
}
