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

// listStart returns the index of the element behind a cursor.
func listStart(hashes []uint64, after *string) (int, error) {
	if after == nil || *after == "" {
		return 0, nil
	}
	b, err := decodeCursor(*after)
	if err != nil {
		return 0, err
	}
	index, n := binary.Uvarint(b)
	if b = b[max(n, 0):]; n <= 0 || len(b) == 0 || len(b)%8 != 0 || len(b) > 8*anchors || index > 1<<31 {
		return 0, badCursor()
	}
	at := make(map[uint64]int, len(hashes))
	for i, h := range hashes {
		at[h] = i
	}
	named := len(b) / 8
	for ; len(b) > 0; b = b[8:] {
		if i, ok := at[binary.BigEndian.Uint64(b)]; ok {
			return i + 1, nil
		}
	}
	// All of them have gone: at most so many elements moved up, besides those that went before them.
	return min(max(int(index)+1-named, 0), len(hashes)), nil
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
