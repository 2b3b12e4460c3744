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

// TestBodies checks that Read returns whole bodies. The sizes of the bodies are near the sizes at which Read takes more memory.
func TestBodies(t *testing.T) {
	m := quota.NewMemory(1 << 20)
	client := netip.MustParseAddr("192.0.2.1")
	for _, near := range []int{0, 512, quota.FreeBytes, 2 * quota.FreeBytes, 4 * quota.FreeBytes, 200 << 10} {
		for size := max(near-2, 0); size <= near+2; size++ {
			want := bytes.Repeat([]byte("abc\n"), size/4+1)[:size]
			for name, r := range map[string]io.Reader{
				"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want)), "with its end": iotest.DataErrReader(bytes.NewReader(want)),
			} {
				body, err := m.Read(client, r)
				if err != nil {
					t.Fatalf("a body of %d bytes (reader: %s): error %v", size, name, err)
				}
				if !bytes.Equal(body.Bytes(), want) {
					t.Errorf("a body of %d bytes (reader: %s): got %d bytes or different bytes", size, name, len(body.Bytes()))
				}
				body.Release()
			}
		}
	}
	broken := errors.New("broken")
	if _, err := m.Read(client, io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a body whose reader fails: error %v, want %v", err, broken)
	}
	if m.Refused() != 0 {
		t.Errorf("%d bodies were refused, want 0", m.Refused())
	}
}

// TestMemoryIsShared checks that one client can use at most three quarters of the memory, and a second client some of the rest.
func TestMemoryIsShared(t *testing.T) {
	const size, long = 1 << 20, 100 << 10 // a body of 100 KiB takes 112 KiB
	m := quota.NewMemory(size)
	var held []*quota.Body
	hold := func(client string) (n int) {
		for {
			body, err := m.Read(netip.MustParseAddr(client), strings.NewReader(strings.Repeat(" ", long)))
			if err != nil {
				if !errors.Is(err, quota.ErrNoMemory) {
					t.Fatal(err)
				}
				return n
			}
			n++
			held = append(held, body)
		}
	}
	if n := hold("192.0.2.1"); n != 6 {
		t.Errorf("the first client: Read accepted %d bodies, want 6", n)
	}
	if n := hold("2001:db8::1"); n != 2 {
		t.Errorf("the second client: Read accepted %d bodies, want 2", n)
	}
	if n := hold("2001:db8::2"); n != 0 {
		t.Errorf("another address of the second client's network: Read accepted %d bodies, want 0", n)
	}
	if m.Held() != 8*(112<<10) || m.Refused() != 3 {
		t.Errorf("%d bytes are held and %d bodies were refused, want %d and 3", m.Held(), m.Refused(), 8*(112<<10))
	}
	if body, err := m.Read(netip.MustParseAddr("192.0.2.1"), strings.NewReader(strings.Repeat(" ", quota.FreeBytes))); err != nil {
		t.Errorf("a body of FreeBytes was refused: %v", err)
	} else {
		body.Release()
	}
	for _, body := range held {
		body.Release()
	}
	if held = nil; hold("192.0.2.3") != 6 {
		t.Error("released memory is not free")
	}
	for _, body := range held {
		body.Release()
	}
}

func TestConcurrentBodies(t *testing.T) {
	m := quota.NewMemory(1 << 20)
	client := netip.MustParseAddr("192.0.2.1")
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			want := strings.Repeat(string(rune('a'+i)), i*10_000)
			for range 100 {
				body, err := m.Read(client, strings.NewReader(want))
				if errors.Is(err, quota.ErrNoMemory) {
					continue
				}
				if err != nil || string(body.Bytes()) != want {
					t.Errorf("goroutine %d: Read returned a wrong body or the error %v", i, err)
					return
				}
				body.Release()
			}
		})
	}
	g.Wait()
	body, err := m.Read(client, strings.NewReader(strings.Repeat(" ", 300<<10)))
	if err != nil {
		t.Fatalf("not all memory was released: %v", err)
	}
	body.Release()
}
