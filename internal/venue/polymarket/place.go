package polymarket

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// maxTrail is the greatest number of earlier cursors that a place remembers. maxPlace is the greatest length of a place in bytes.
const (
	maxTrail = 16
	maxPlace = maxCursor + maxTrail*len("\nffffffffffffffff")
)

// place is the start of a page in a list: the cursor of the venue, and hashes of the cursors of earlier pages, each on a line. The first
// page has the empty place.
type place string

func (p place) cursor() string {
	cursor, _ := p.split()
	return cursor
}

func (p place) split() (cursor string, trail []string) {
	parts := strings.Split(string(p), "\n")
	return parts[0], parts[1:]
}

// next returns the place of the next page, which begins at a cursor of the venue. It is empty after the last page. On its last page,
// Polymarket may send the cursor of this page again, or the cursor of an earlier page. So a cursor that the list had before ends it.
func (p place) next(cursor string) place {
	own, trail := p.split()
	trail = append(trail, hashOf(own))
	if cursor == "" || slices.Contains(trail, hashOf(cursor)) {
		return ""
	}
	trail = trail[max(0, len(trail)-maxTrail):]
	return place(cursor + "\n" + strings.Join(trail, "\n"))
}

func hashOf(cursor string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cursor))
	return strconv.FormatUint(h.Sum64(), 16)
}
