package market

import (
	"strings"
	"testing"
)

// FuzzQualify checks that CutVenue undoes Qualify for the venue itself, and for no other venue.
func FuzzQualify(f *testing.F) {
	f.Add("kalshi", "kalshi-2", "KXFED:yes")
	f.Add("v", "w", "w:x")
	f.Add("a", "a", ":")
	f.Fuzz(func(t *testing.T, a, b, id string) {
		if a == b || a == "" || b == "" || id == "" || strings.Contains(a+b, ":") {
			t.Skip()
		}
		qualified := Qualify(a, id)
		if own, ok := CutVenue(a, qualified); own != id || !ok {
			t.Errorf("CutVenue(%q, %q) = %q, %v, want %q", a, qualified, own, ok, id)
		}
		if own, ok := CutVenue(b, qualified); ok {
			t.Errorf("CutVenue(%q, %q) = %q, want no id", b, qualified, own)
		}
		if i := (Names{"", b, a}).Find(qualified); i != 2 {
			t.Errorf("Find(%q) = %d, want 2", qualified, i)
		}
		if i := (Names{"", a, b}).Find(id); i > 0 != (strings.HasPrefix(id, a+":") || strings.HasPrefix(id, b+":")) {
			t.Errorf("Find(%q) = %d for a bare id", id, i)
		}
		if Qualify("", id) != id || Qualify(a, "") != "" {
			t.Error("Qualify adds a name to nothing, or nothing to an id")
		}
	})
}
