package market

import (
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func TestIntern(t *testing.T) {
	const id = "71321045679252212594626385532706912750332728571942532289631379312455583992563"
	first := Intern(strings.Clone(id))
	again := strings.Clone(id)
	if got := Intern(again); got != id || unsafe.StringData(got) != unsafe.StringData(first) {
		t.Errorf("Intern returned %q, want a string that shares memory with the first string", got)
	}
	if n := testing.AllocsPerRun(100, func() { Intern(again) }); n != 0 {
		t.Errorf("interning a known text takes %v allocations", n)
	}
	body := strings.Repeat("x", maxInterned+1)
	if got := Intern(body); unsafe.StringData(got) != unsafe.StringData(body) {
		t.Error("a long text is copied")
	}
	if part := body[:8]; unsafe.StringData(Intern(part)) == unsafe.StringData(part) {
		t.Error("an interned part keeps the whole body in memory")
	}
}

// TestInternReplacesTexts checks concurrent calls of Intern with more texts than the table has room for.
func TestInternReplacesTexts(t *testing.T) {
	var g sync.WaitGroup
	for range 4 {
		g.Go(func() {
			for n := range 2 * len(interned) {
				text := string(rune('a'+n%26)) + strings.Repeat("-", n%7) + string(rune(0x4e00+n/26))
				if got := Intern(text); got != text {
					t.Errorf("Intern(%q) = %q", text, got)
					return
				}
			}
		})
	}
	g.Wait()
}
