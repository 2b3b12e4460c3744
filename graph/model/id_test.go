package model

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

func TestIDsRoundTrip(t *testing.T) {
	for _, test := range []struct {
		kind  string
		parts []string
	}{
		{KindUser, []string{"0x1111111111111111111111111111111111111111"}},
		{KindToken, []string{"2851044534032346972"}},
		{KindMarket, []string{"0x30224ec4f8bfb84ba6be701ed14f4729"}},
		{KindEvent, []string{"ä event: 1"}},
		{KindOrder, []string{"0x1", "ord-1"}},
		{KindPosition, []string{"0x1", "m", "YES"}},
		{KindPosition, []string{"0x1", "m", ""}},
		{KindPosition, []string{"0x1", "m", "two\nlines\n"}},
	} {
		id := EncodeID(test.kind, test.parts...)
		kind, parts, ok := DecodeID(id)
		if !ok || kind != test.kind || !slices.Equal(parts, test.parts) {
			t.Errorf("the id of %s %q was decoded to %s %q, %v", test.kind, test.parts, kind, parts, ok)
		}
		if strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("the id %s has characters that URLs must escape", id)
		}
	}
	// These ids must never change, because the documentation promises that ids are stable.
	for id, want := range map[string]string{
		"VG9rZW4KMQ": EncodeID(KindToken, "1"), "VXNlcgoweDE": EncodeID(KindUser, "0x1"),
		"UG9zaXRpb24KMHgxCm0KWUVT": PositionID(market.Address("0x1"), &market.Position{MarketID: "m", TokenID: "t", Outcome: "YES"}),
	} {
		if id != want {
			t.Errorf("an id is now %s, want %s", want, id)
		}
	}
}

// TestAppendedIDs checks that the methods ID and AppendID make equal ids.
func TestAppendedIDs(t *testing.T) {
	const odd = "\"two\nlines\" of ümläuts, "
	long := strings.Repeat(odd, 20)
	for _, object := range []interface {
		ID() string
		AppendID(dst []byte) []byte
	}{
		Market{Market: &market.Market{MarketID: odd}}, Token{TokenID: odd}, TokenPrice{Quote: &market.Price{TokenID: long}}, Spread{Top: &market.Spread{TokenID: odd}},
		Order{Order: &market.Order{OrderID: odd}, Address: "0x1"}, Position{Position: &market.Position{MarketID: "m", Outcome: long}, Address: "0x1"},
	} {
		if id := string(object.AppendID([]byte("before "))); id != "before "+object.ID() || object.ID() == "" {
			t.Errorf("AppendID of %T appended %s, want %s", object, id, object.ID())
		}
	}
}

func TestBadIDs(t *testing.T) {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, id := range map[string]string{
		"empty": "", "not base64": "?", "padded": "VG9rZW4KMQ==", "no parts": encode("Token"), "an empty part": encode("Token\n"), "no such type": encode("Balance\n0x1"),
		"too few parts": encode("Order\n0x1"), "no type": encode("\nx"), "too long": strings.Repeat("A", 2049),
	} {
		if kind, parts, ok := DecodeID(id); ok {
			t.Errorf("DecodeID accepts the id %q as %s %q", name, kind, parts)
		}
	}
}

// TestVenueInIDs checks IDPrefix, SplitVenue and TypeOf for ids with and without the name of a venue.
func TestVenueInIDs(t *testing.T) {
	local := EncodeID(KindToken, "a.b")
	for venue, id := range map[string]string{"": local, "polymarket": "polymarket." + local} {
		if IDPrefix(venue)+local != id {
			t.Errorf("the prefix of %q is %q", venue, IDPrefix(venue))
		}
		if got, rest := SplitVenue(id); got != venue || rest != local {
			t.Errorf("SplitVenue(%q) = %q, %q, want %q, %q", id, got, rest, venue, local)
		}
		if kind, ok := TypeOf(id); !ok || kind != KindToken {
			t.Errorf("TypeOf(%q) = %q, %v, want %q", id, kind, ok, KindToken)
		}
	}
}

func FuzzDecodeID(f *testing.F) {
	f.Add("VG9rZW4KMQ")
	f.Add("UG9zaXRpb24KMHgxCm0KWUVT")
	f.Fuzz(func(t *testing.T, id string) {
		kind, parts, ok := DecodeID(id)
		if !ok {
			return
		}
		again, same, ok := DecodeID(EncodeID(kind, parts...))
		if !ok || again != kind || !slices.Equal(same, parts) {
			t.Errorf("%q was decoded to %s %q, but the new id of these parts to %s %q", id, kind, parts, again, same)
		}
	})
}
