package market

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MarketRef identifies a market in one of the ways that a venue supports.
type MarketRef struct {
	By    MarketRefKind
	Value string
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
