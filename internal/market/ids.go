package market

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MarketRef identifies a market in one of the ways that a venue supports.
type MarketRef struct {
	By    MarketRefKind
	Value string `id:"yes"`
}

// MarketRefKind is a way to identify a market.
type MarketRefKind uint8

// The ways to identify a market: its id, its slug, or a token of one of its outcomes.
const (
	ByMarketID MarketRefKind = iota
	BySlug
	ByToken
)

// EventRef identifies an event by its id or, if the id is empty, by its slug.
type EventRef struct {
	EventID, EventSlug string
}

// MaxVenues is the greatest number of venues of a process.
const MaxVenues = 8

// Names are the names of all venues of a process with several, or nil. Names[0] is empty. An id of a thing of the venue at index i is
// Names[i], a colon and the venue's own id. Every other id belongs to the first venue, even one with a colon.
type Names []string

// Find returns the index of the venue to which an id belongs.
func (n Names) Find(id string) int {
	for i := 1; i < len(n); i++ {
		if _, ok := CutVenue(n[i], id); ok {
			return i
		}
	}
	return 0
}

// Of returns the name of the venue to which an id belongs.
func (n Names) Of(id string) string {
	if i := n.Find(id); i > 0 {
		return n[i]
	}
	return ""
}

// Qualify returns the id of a thing of a further venue. It returns id itself if venue or id is empty.
func Qualify(venue, id string) string {
	if venue == "" || id == "" {
		return id
	}
	return venue + ":" + id
}

// CutVenue returns the venue's own id of a thing. ok is false if id does not begin with the name of the venue. If venue is empty,
// CutVenue returns id and true.
func CutVenue(venue, id string) (own string, ok bool) {
	if venue == "" {
		return id, true
	}
	if n := len(venue); len(id) > n && id[n] == ':' && id[:n] == venue {
		return id[n+1:], true
	}
	return "", false
}

// MaxIDLength is the greatest length of an identifier in bytes.
const MaxIDLength = 256

// CheckID returns an error for an identifier that could change the meaning of a request to the venue. Such an identifier is
// empty, longer than MaxIDLength or not UTF-8, or contains a comma, a slash or a control character. The error has
// CodeBadUserInput.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDLength {
		return Errorf(CodeBadUserInput, "an id has 1 to %d bytes", MaxIDLength)
	}
	plain := true // whether all bytes so far are ASCII
	for i := range len(id) {
		switch c := id[i]; {
		case c == ',' || c == '/' || c < ' ' || c == 0x7f:
			return Errorf(CodeBadUserInput, "an id has no comma, slash or control character")
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	switch {
	case plain:
		return nil
	case !utf8.ValidString(id):
		return Errorf(CodeBadUserInput, "an id is UTF-8")
	case strings.ContainsFunc(id, unicode.IsControl):
		return Errorf(CodeBadUserInput, "an id has no comma, slash or control character")
	}
	return nil
}
