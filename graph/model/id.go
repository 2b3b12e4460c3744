package model

import (
	"encoding/base64"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
)

// The kinds of objects that have global ids.
const (
	KindUser     = "User"
	KindPosition = "Position"
	// KindLot is a position whose Ordinal is not 0: the wallet's second or later position in the same market and outcome.
	KindLot    = "Lot"
	KindOrder  = "Order"
	KindMarket = "Market"
	KindEvent  = "Event"
	KindToken  = "Token"
)

// separator separates the parts of an id. Only the label of an outcome can contain the separator, because market.CheckID rejects
// control characters in ids. Such a label is always the last part.
const separator = "\n"

// venueEnd separates the name of the venue from the rest of a global id. The rest is base64, which does not contain venueEnd.
const venueEnd = "."

// EncodeID returns the opaque id of an object within its venue. Package exec writes the result of IDPrefix before this id.
func EncodeID(kind string, parts ...string) string {
	var buf [256]byte
	return string(AppendID(buf[:0], kind, parts...))
}

// AppendID is like EncodeID, but appends the id to dst. The id needs no JSON escapes. If a type has a method AppendID, generated
// code calls it instead of the method ID, which saves an allocation.
func AppendID(dst []byte, kind string, parts ...string) []byte {
	var buf [192]byte
	id := append(buf[:0], kind...)
	for _, part := range parts {
		id = append(append(id, separator...), part...)
	}
	return base64.RawURLEncoding.AppendEncode(dst, id)
}

// DecodeID returns the kind and the parts of an id that EncodeID has returned for one of the kinds above. ok is false for all other
// texts, and for ids of more than 2,048 bytes.
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

// IDPrefix returns the text with which every global id of a venue begins. It is empty for a venue without a name.
func IDPrefix(venue string) string {
	if venue == "" {
		return ""
	}
	return venue + venueEnd
}

// SplitVenue splits a global id into the name of its venue, which may be empty, and the id for DecodeID.
func SplitVenue(id string) (venue, local string) {
	venue, local, ok := strings.Cut(id, venueEnd)
	if !ok {
		return "", id
	}
	return venue, local
}

// TypeOf returns the name of the GraphQL type of the object with a global id. ok is false if id is not a global id.
func TypeOf(id string) (name string, ok bool) {
	_, id = SplitVenue(id)
	kind, _, ok := DecodeID(id)
	if kind == KindLot {
		return KindPosition, ok
	}
	return kind, ok
}

// PositionID returns the id of a wallet's position within its venue, like EncodeID.
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
