package quota_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"oddsgraph/httpapi/quota"
)

// TestTexts reads texts of every size around those where more room is taken, however they arrive.
func TestTexts(t *testing.T) {
	m := quota.NewMemory(1 << 20)
	client := netip.MustParseAddr("192.0.2.1")
	for _, near := range []int{0, 512, quota.FreeBytes, 2 * quota.FreeBytes, 4 * quota.FreeBytes, 200 << 10} {
		for size := max(near-2, 0); size <= near+2; size++ {
			want := bytes.Repeat([]byte("abc\n"), size/4+1)[:size]
			for name, r := range map[string]io.Reader{
				"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want)), "with its end": iotest.DataErrReader(bytes.NewReader(want)),
			} {
				text, err := m.Read(client, r)
				if err != nil {
					t.Fatalf("%d bytes, %s: %v", size, name, err)
				}
				if !bytes.Equal(text.Bytes(), want) {
					t.Errorf("%d bytes, %s: got %d", size, name, len(text.Bytes()))
				}
				text.Release()
			}
		}
	}
	broken := errors.New("broken")
	if _, err := m.Read(client, io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a text that breaks off: %v", err)
	}
	if m.Refused() != 0 {
		t.Errorf("%d were refused", m.Refused())
	}
}

// TestRoomIsShared has clients hold texts until there is no more room for them: one alone gets three quarters of it, a second
// finds some still, short texts find room always, and what is released is free again.
func TestRoomIsShared(t *testing.T) {
	const size, long = 1 << 20, 100 << 10 // which take 112 KiB each
	m := quota.NewMemory(size)
	var held []*quota.Text
	hold := func(client string) (n int) {
		for {
			text, err := m.Read(netip.MustParseAddr(client), strings.NewReader(strings.Repeat(" ", long)))
			if err != nil {
				if !errors.Is(err, quota.ErrNoRoom) {
					t.Fatal(err)
				}
				return n
			}
			n++
			held = append(held, text)
		}
	}
	if n := hold("192.0.2.1"); n != 6 {
		t.Errorf("one alone holds %d", n)
	}
	if n := hold("2001:db8::1"); n != 2 {
		t.Errorf("another holds %d", n)
	}
	if n := hold("2001:db8::2"); n != 0 {
		t.Errorf("the same network holds %d more", n)
	}
	if text, err := m.Read(netip.MustParseAddr("192.0.2.1"), strings.NewReader(strings.Repeat(" ", quota.FreeBytes))); err != nil {
		t.Errorf("a short text: %v", err)
	} else {
		text.Release()
	}
	for _, text := range held {
		text.Release()
	}
	if held = nil; hold("192.0.2.3") != 6 {
		t.Error("what was released is not free")
	}
	for _, text := range held {
		text.Release()
	}
}

// TestTextsAtOnce reads from many goroutines.
func TestTextsAtOnce(t *testing.T) {
	m := quota.NewMemory(1 << 20)
	client := netip.MustParseAddr("192.0.2.1")
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			want := strings.Repeat(string(rune('a'+i)), i*10_000)
			for range 100 {
				text, err := m.Read(client, strings.NewReader(want))
				if errors.Is(err, quota.ErrNoRoom) {
					continue
				}
				if err != nil || string(text.Bytes()) != want {
					t.Errorf("%d: %v", i, err)
					return
				}
				text.Release()
			}
		})
	}
	g.Wait()
	text, err := m.Read(client, strings.NewReader(strings.Repeat(" ", 300<<10)))
	if err != nil {
		t.Fatalf("not all was given back: %v", err)
	}
	text.Release()
}
