package resolvers

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
)

// A cursor into a list that is read whole names an element and some of those before it. When the element has gone, the
// list goes on behind the nearest of its predecessors that still stands, so paging skips nothing when positions close.

// anchors is the number of elements that a cursor names.
const anchors = 8

func keyHash(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return h.Sum64()
}

// listCursor returns the cursor of element i of a list with the given key hashes.
func listCursor(hashes []uint64, i int) string {
	b := make([]byte, 0, 8*anchors+binary.MaxVarintLen64)
	b = binary.AppendUvarint(b, uint64(i))
	for j := i; j >= 0 && j > i-anchors; j-- {
		b = binary.BigEndian.AppendUint64(b, hashes[j])
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// place is a cursor that was read: the index where its element stood, and the hashes of that and of those before it. Its
// zero value is the beginning of the list.
type place struct {
	index int
	named []uint64
}

// parsePlace reads a cursor into a list.
func parsePlace(after *string) (place, error) {
	if after == nil || *after == "" {
		return place{}, nil
	}
	b, err := decodeCursor(*after)
	if err != nil {
		return place{}, err
	}
	index, n := binary.Uvarint(b)
	if b = b[max(n, 0):]; n <= 0 || len(b) == 0 || len(b)%8 != 0 || len(b) > 8*anchors || index > 1<<31 {
		return place{}, badCursor()
	}
	p := place{index: int(index)}
	for ; len(b) > 0; b = b[8:] {
		p.named = append(p.named, binary.BigEndian.Uint64(b))
	}
	return p, nil
}

// start returns the index of the element behind the place in a list with the given key hashes.
func (p place) start(hashes []uint64) int {
	if len(p.named) == 0 {
		return 0
	}
	at := make(map[uint64]int, len(hashes))
	for i, h := range hashes {
		at[h] = i
	}
	for _, h := range p.named {
		if i, ok := at[h]; ok {
			return i + 1
		}
	}
	// All of them have gone: at least so many elements moved up, besides those that went before them.
	return min(max(p.index+1-len(p.named), 0), len(hashes))
}

// pageCursor names an element of a list that the venue pages: the venue's page and the element on it. Without an element
// it names the beginning of the page.
type pageCursor struct {
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

func parsePageCursor(after *string, limit, maxLimit int) (pageCursor, error) {
	c := pageCursor{Limit: limit}
	if after == nil || *after == "" {
		return c, nil
	}
	b, err := decodeCursor(*after)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil || c.Limit < 1 || c.Limit > maxLimit || c.Index < 0 {
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
