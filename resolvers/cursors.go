package resolvers

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
)

// A cursor begins with a hash of what its list is, so that no list takes another's.

// listHash is the hash of a list: of what it holds, and of whom or what it is.
func listHash(kind, of string) uint64 { return keyHash(kind + "\n" + of) }

// A cursor into a list that is read whole names an element and some of those before it. When the element has gone, the
// list goes on behind the nearest of its predecessors that still stands, so paging skips nothing when positions close.

const (
	// near is the number of neighbouring elements that a cursor names. While one of them stands, nothing is shown twice.
	// Farther ones are named at distances that double, so that something stands even when much has gone.
	near = 8
	// maxNamed is greater than the number of elements that are named in any list that is read.
	maxNamed = 32
)

// keyHash is FNV-1a, as hash/fnv has it for those who have the key as bytes.
func keyHash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h
}

// keyHashes are the hashes of the keys of a list's elements, each made when it is asked for.
type keyHashes struct {
	key  func(i int) string
	made []uint64
}

func newKeyHashes(n int, key func(i int) string) *keyHashes {
	return &keyHashes{key, make([]uint64, n)}
}

func (h *keyHashes) at(i int) uint64 {
	if h.made[i] == 0 {
		h.made[i] = keyHash(h.key(i))
	}
	return h.made[i]
}

// listCursor returns the cursor of element i of a list.
func listCursor(list uint64, hashes *keyHashes, i int) string {
	var buf [8 + 8*maxNamed]byte
	b := binary.BigEndian.AppendUint64(buf[:0], list)
	for back := 0; back <= i; {
		b = binary.BigEndian.AppendUint64(b, hashes.at(i-back))
		if back++; back >= near {
			back *= 2
		}
	}
	var text [(8 + 8*maxNamed) * 8 / 6]byte
	return string(base64.RawURLEncoding.AppendEncode(text[:0], b))
}

// place is a cursor that was read: the hashes of the elements that it names, the nearest first. Without any it is the
// beginning of the list.
type place []uint64

// parsePlace reads a cursor into a list.
func parsePlace(list uint64, after *string) (place, error) {
	if after == nil || *after == "" {
		return nil, nil
	}
	b, err := decodeCursor(*after)
	if err != nil {
		return nil, err
	}
	if len(b) < 16 || len(b)%8 != 0 || len(b) > 8+8*maxNamed || binary.BigEndian.Uint64(b) != list {
		return nil, badCursor()
	}
	b = b[8:]
	p := make(place, 0, len(b)/8)
	for ; len(b) > 0; b = b[8:] {
		p = append(p, binary.BigEndian.Uint64(b))
	}
	return p, nil
}

// start returns the index of the element behind the place in a list: the beginning when nothing that the cursor names stands
// any more.
func (p place) start(hashes *keyHashes) int {
	for _, named := range p {
		for i := range hashes.made {
			if hashes.at(i) == named {
				return i + 1
			}
		}
	}
	return 0
}

// pageCursor names an element of a list that the venue pages: the venue's page and the element on it. Without an element
// it names the beginning of the page.
type pageCursor struct {
	// List is the hash of the list.
	List uint64 `json:"o"`
	// Page and Limit read the venue's page again.
	Page  string `json:"p,omitempty"`
	Limit int    `json:"l,omitempty"`
	// Element is the hash of the element's key, Index where it stood.
	Element uint64 `json:"e,omitempty"`
	Index   int    `json:"i,omitempty"`
}

func (c pageCursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("resolvers: " + err.Error()) // strings and numbers can't fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePageCursor(list uint64, after *string, limit, maxLimit int) (pageCursor, error) {
	c := pageCursor{List: list, Limit: limit}
	if after == nil || *after == "" {
		return c, nil
	}
	b, err := decodeCursor(*after)
	if err != nil {
		return c, err
	}
	c.List = 0
	if err := json.Unmarshal(b, &c); err != nil || c.List != list || c.Limit < 1 || c.Limit > maxLimit || c.Index < 0 {
		return c, badCursor()
	}
	return c, nil
}

func decodeCursor(s string) ([]byte, error) {
	if len(s) > 4096 {
		return nil, badCursor()
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, badCursor()
	}
	return b, nil
}

func badCursor() error {
	return badInput("after is not a cursor of this list; pass an endCursor or an edge's cursor as it came")
}
