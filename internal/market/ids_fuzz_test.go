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
	f.Add("v", "w", "v:")
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
		if i := (Names{b, a}).Find(qualified); i != 1 {
			t.Errorf("Find(%q) = %d, want 1", qualified, i)
		}
		name, own, _ := strings.Cut(id, ":")
		if i := (Names{a, b}).Find(id); i >= 0 != (own != "" && (name == a || name == b)) { // a name and a colon are a bare id
			t.Errorf("Find(%q) = %d", id, i)
		}
		if Qualify("", id) != id || Qualify(a, "") != "" {
			t.Error("Qualify adds a name to nothing, or nothing to an id")
		}
	})
}
