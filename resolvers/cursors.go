package resolvers

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"oddsgraph/internal/market"
)

// listHash returns a hash that identifies a list. The parameter kind names the kind of the list's elements. The owner, for example
// the wallet's address, identifies the list among all lists of this kind. Every cursor contains the hash of its list, so that a
// cursor of another list is rejected.
func listHash(kind, owner string) uint64 { return keyHash(kind + "\n" + owner) }

// A cursor into a list that is read as a whole contains the hashes of an element and of some elements before it. If the element was
// removed, the next page begins after the nearest of these elements that is still in the list. So the next page skips no element,
// for example when positions close.

const (
	// adjacentHashes is the number of adjacent elements whose hashes a cursor contains: the cursor's element and the elements directly
	// before it. If one of these elements is still in the list, the next page repeats no element. The cursor also contains hashes of
	// earlier elements, at distances that double each time. So the cursor works even after many removals.
	adjacentHashes = 8
	// maxHashes is the greatest number of hashes in a cursor. No list is long enough to need more.
	maxHashes = 32
)

// keyHash returns the FNV-1a hash of a string. Package hash/fnv would require a copy of the string as bytes.
func keyHash(key string) uint64 { return addToHash(14695981039346656037, key) }

// addToHash returns the hash of the hashed string followed by more.
func addToHash(h uint64, more string) uint64 {
	for i := range len(more) {
		h = (h ^ uint64(more[i])) * 1099511628211
	}
	return h
}

// positionHash returns keyHash of the position's key as a text, without making the text of the key.
func positionHash(p *market.Position) uint64 {
	key := p.Key()
	if key.Ordinal != 0 {
		return keyHash(key.String())
	}
	return addToHash(addToHash(keyHash(key.MarketID), "\n"), key.Outcome)
}

// keyHashes contains the hashes of the keys of a list's elements. Each hash is computed on first use.
type keyHashes struct {
	hash     func(i int) uint64
	computed []uint64
}

func newKeyHashes(n int, hash func(i int) uint64) *keyHashes {
	return &keyHashes{hash, make([]uint64, n)}
}

func (h *keyHashes) at(i int) uint64 {
	if h.computed[i] == 0 {
		h.computed[i] = h.hash(i)
	}
	return h.computed[i]
}

// all returns the hashes of all elements. The result must not be changed.
func (h *keyHashes) all() []uint64 {
	for i := range h.computed {
		h.at(i)
	}
	return h.computed
}

// index returns the index of the first element with a hash, or -1.
func (h *keyHashes) index(hash uint64) int {
	for i := range h.computed {
		if h.at(i) == hash {
			return i
		}
	}
	return -1
}

func listCursor(list uint64, hashes *keyHashes, i int) string {
	var buf [8 + 8*maxHashes]byte
	b := binary.BigEndian.AppendUint64(buf[:0], list)
	for back := 0; back <= i; {
		b = binary.BigEndian.AppendUint64(b, hashes.at(i-back))
		if back++; back >= adjacentHashes {
			back *= 2
		}
	}
	var text [(8 + 8*maxHashes) * 8 / 6]byte
	return string(base64.RawURLEncoding.AppendEncode(text[:0], b))
}

// listPosition contains the hashes of a decoded cursor, from the element itself to the most distant element. An empty listPosition
// means the beginning of the list.
type listPosition []uint64

// parseListCursor decodes a cursor of a list. A nil or empty cursor means the beginning of the list.
func parseListCursor(list uint64, after *string) (listPosition, error) {
	if after == nil || *after == "" {
		return nil, nil
	}
	b, err := decodeCursor(*after, maxCursor)
	if err != nil {
		return nil, err
	}
	if len(b) < 16 || len(b)%8 != 0 || len(b) > 8+8*maxHashes || binary.BigEndian.Uint64(b) != list {
		return nil, badCursor()
	}
	b = b[8:]
	p := make(listPosition, 0, len(b)/8)
	for ; len(b) > 0; b = b[8:] {
		p = append(p, binary.BigEndian.Uint64(b))
	}
	return p, nil
}

// start returns the index of the first element after the position. It returns 0 if the position is empty, or if all elements that
// it contains were removed.
func (p listPosition) start(hashes *keyHashes) int {
	for _, named := range p {
		if i := hashes.index(named); i >= 0 {
			return i + 1
		}
	}
	return 0
}

// reached reports whether hashes contains the element of the cursor. It returns true for an empty position. The hashes may be
// those of only the first elements of the list.
func (p listPosition) reached(hashes *keyHashes) bool { return len(p) == 0 || hashes.index(p[0]) >= 0 }

// pageCursor is a cursor into a list that the venue sends in pages. It identifies an element on a page of the venue. If the field
// Element is 0, the cursor identifies the beginning of the page.
type pageCursor struct {
	List uint64 `json:"o"`
	// Page and Limit are the arguments of the call to the venue that returned the page.
	Page  string `json:"p,omitempty"`
	Limit int    `json:"l,omitempty"`
	// Element is the hash of the element's key. Index is the index of the element on the page.
	Element uint64 `json:"e,omitempty"`
	Index   int    `json:"i,omitempty"`
}

func (c pageCursor) String() string { return encodeCursor(c) }

func encodeCursor(c any) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("resolvers: " + err.Error()) // marshaling strings and numbers does not fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePageCursor(list uint64, after *string, limit, maxLimit int) (pageCursor, error) {
	c := pageCursor{List: list, Limit: limit}
	if after == nil || *after == "" {
		return c, nil
	}
	b, err := decodeCursor(*after, maxCursor)
	if err != nil {
		return c, err
	}
	c.List = 0
	if err := json.Unmarshal(b, &c); err != nil || c.List != list || c.Limit < 1 || c.Limit > maxLimit || c.Index < 0 {
		return c, badCursor()
	}
	return c, nil
}

// turnCursor is a cursor into a list over several venues.
type turnCursor struct {
	List uint64 `json:"o"`
	// Turn is the index of the venue of the next row.
	Turn int `json:"t,omitempty"`
	// At contains the cursor into the list of each venue, which is empty for the beginning of the list. It is atEnd for a venue that is not
	// asked any more: its list has ended, or it cannot search so. Total is the number of rows of these venues, or -1 if it is unknown.
	At    []string `json:"a"`
	Total int      `json:"n,omitempty"`
}

const atEnd = "-" // is no cursor of a list

func parseTurnCursor(list uint64, after *string, venues int) (turnCursor, error) {
	c := turnCursor{List: list, At: make([]string, venues)}
	if after == nil || *after == "" {
		return c, nil
	}
	b, err := decodeCursor(*after, maxCursor+venues*base64.RawURLEncoding.EncodedLen(maxCursor)) // it contains a cursor of each venue
	if err != nil {
		return c, err
	}
	c = turnCursor{}
	if err := json.Unmarshal(b, &c); err != nil || c.List != list || len(c.At) != venues || c.Turn < 0 || c.Turn >= venues || c.Total < -1 {
		return c, badCursor()
	}
	return c, nil
}

// addTotal adds a number of rows to a sum, which is -1 if a number is nil.
func addTotal(sum int, total *int) int {
	if total == nil || sum < 0 {
		return -1
	}
	return sum + *total
}

// maxCursor is the greatest length of a cursor into the list of one venue.
const maxCursor = 4096

func decodeCursor(s string, most int) ([]byte, error) {
	if len(s) > most {
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
