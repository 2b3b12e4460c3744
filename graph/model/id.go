package model

import (
	"encoding/base64"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
)

// The kinds of objects that a global id can name.
const (
	KindUser     = "User"
	KindPosition = "Position"
	// KindLot names a wallet's second or later position in the same market and outcome.
	KindLot    = "Lot"
	KindOrder  = "Order"
	KindMarket = "Market"
	KindEvent  = "Event"
	KindToken  = "Token"
)

// separator separates the parts of an id. Ids with control characters are rejected, so only a label of an outcome can contain
// the separator. Such a label is always the last part.
const separator = "\n"

// venueEnd ends the name of the venue in a global id. Base64 does not use this character.
const venueEnd = "."

// EncodeID returns the opaque id of an object within its venue. Package exec writes the venue's prefix before it.
func EncodeID(kind string, parts ...string) string {
	var buf [256]byte
	return string(AppendID(buf[:0], kind, parts...))
}

// AppendID appends the opaque id of an object within its venue. The id needs no JSON escapes. Types whose ids appear in lists have a
// method AppendID; generated code calls it instead of ID.
func AppendID(dst []byte, kind string, parts ...string) []byte {
	var buf [192]byte
	id := append(buf[:0], kind...)
	for _, part := range parts {
		id = append(append(id, separator...), part...)
	}
	return base64.RawURLEncoding.AppendEncode(dst, id)
}

// DecodeID returns the kind and the parts of an id without the venue's prefix. ok is false if id is not such an id.
func DecodeID(id string) (kind string, parts []string, ok bool) {
	if len(id) > 2048 {
		return "", nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return "", nil, false
	}
	kind, rest, ok := strings.Cut(string(b), separator)
	if !ok {
		return "", nil, false
	}
	n := map[string]int{KindUser: 1, KindPosition: 3, KindLot: 4, KindOrder: 2, KindMarket: 1, KindEvent: 1, KindToken: 1}[kind]
	parts = strings.SplitN(rest, separator, n)
	return kind, parts, n > 0 && len(parts) == n && parts[0] != ""
}

// IDPrefix returns the text that begins every global id of a venue's objects. It is empty for a venue without a name.
func IDPrefix(venue string) string {
	if venue == "" {
		return ""
	}
	return venue + venueEnd
}

// SplitVenue splits a global id into the name of its venue and the id within that venue. The name may be empty. DecodeID decodes
// the id within the venue.
func SplitVenue(id string) (venue, local string) {
	venue, local, ok := strings.Cut(id, venueEnd)
	if !ok {
		return "", id
	}
	return venue, local
}

// TypeOf returns the name of the GraphQL type of the object that a global id names. ok is false if id is not a global id.
func TypeOf(id string) (name string, ok bool) {
	_, id = SplitVenue(id)
	kind, _, ok := DecodeID(id)
	if kind == KindLot {
		return KindPosition, ok
	}
	return kind, ok
}

// PositionID returns the global id of a wallet's position.
func PositionID(a market.Address, p *market.Position) string {
	var buf [256]byte
	return string(appendPositionID(buf[:0], a, p))
}

func appendPositionID(dst []byte, a market.Address, p *market.Position) []byte {
	if p.Ordinal == 0 {
		return AppendID(dst, KindPosition, string(a), p.MarketID, p.Outcome)
	}
	return AppendID(dst, KindLot, string(a), p.MarketID, strconv.Itoa(p.Ordinal), p.Outcome)
}
