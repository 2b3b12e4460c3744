package writev_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/writev"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves h on connections that gather and returns the address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	writev.Server(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(writev.Listener(l)) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

var numbers = func() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 100_100; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.Bytes()
}()

// text returns n bytes of which no two parts are alike.
func text(n int) []byte { return numbers[:n] }

// TestResponsesArriveWhole asks one connection for bodies of every size around that of the buffer, in every form.
func TestResponsesArriveWhole(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		size, _ := strconv.Atoi(q.Get("size"))
		if q.Has("long") {
			w.Header().Set("X-Long", strings.Repeat("x", 9000))
		}
		if !q.Has("chunked") {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		if q.Has("flushed") {
			_ = http.NewResponseController(w).Flush()
		}
		n, err := writev.Write(r.Context(), w, text(size))
		if n != size || err != nil {
			t.Errorf("%s: wrote %d, %v", r.URL, n, err)
		}
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for _, form := range []string{"", "&long", "&chunked", "&flushed", "&long&chunked"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for _, near := range []int{2, 2048, 3500, 4096, 8192, 12288, 100_000} {
				for size := near - 2; size <= near+2; size++ {
					r, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://%s/?size=%d%s", addr, size, form), nil)
					if err != nil {
						t.Fatal(err)
					}
					if err := r.Write(c); err != nil {
						t.Fatal(err)
					}
					resp, err := http.ReadResponse(in, r)
					if err != nil {
						t.Fatalf("%s %s: %v", method, r.URL, err)
					}
					want := text(size)
					if method == http.MethodHead {
						want = nil
					}
					if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%s %s: %d bytes, %v", method, r.URL, len(got), err)
					}
				}
			}
		}
	}
}

// TestAPanicLosesNothing has a handler fail when all is written.
func TestAPanicLosesNothing(t *testing.T) {
	for _, size := range []int{5000, 20_000} {
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			_, _ = writev.Write(r.Context(), w, text(size))
			panic(http.ErrAbortHandler)
		})
		resp, err := http.Get("http://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, text(size)) {
			t.Errorf("%d: %d bytes, %v", size, len(got), err)
		}
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestOthersWriteAsEver writes to what is no connection that gathers.
func TestOthersWriteAsEver(t *testing.T) {
	var b bytes.Buffer
	if n, err := writev.Write(context.Background(), &b, text(5000)); n != 5000 || err != nil || !bytes.Equal(b.Bytes(), text(5000)) {
		t.Errorf("%d, %v, %d bytes", n, err, b.Len())
	}
}

// TestDeadlines sets one deadline after the other on a connection whose peer takes nothing, so that writing ends when the
// deadline that counts does.
func TestDeadlines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := writev.Listener(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write := func() error {
		_, err := c.Write([]byte("x"))
		return err
	}
	const hour = time.Hour
	now := time.Now()
	for _, step := range []struct {
		what string
		set  func(time.Time) error
		at   time.Time
		ends bool
	}{
		{"one that is over", c.SetWriteDeadline, now.Add(-hour), true},
		{"one to come", c.SetWriteDeadline, now.Add(hour), false},
		{"nearly the same", c.SetWriteDeadline, now.Add(hour + time.Second), false},
		{"an earlier one that is over", c.SetWriteDeadline, now.Add(-hour), true},
		{"none", c.SetWriteDeadline, time.Time{}, false},
		{"one that is over", c.SetWriteDeadline, now.Add(-hour), true},
		{"none for all", c.SetDeadline, time.Time{}, false},
		{"the same as before", c.SetWriteDeadline, now.Add(-hour), true},
		{"none", c.SetWriteDeadline, time.Time{}, false},
		{"over for all", c.SetDeadline, now.Add(-hour), true},
	} {
		if err := step.set(step.at); err != nil {
			t.Fatal(err)
		}
		if err := write(); errors.Is(err, os.ErrDeadlineExceeded) != step.ends {
			t.Errorf("%s: writing gave %v", step.what, err)
		}
	}
	// What is to end soon does.
	if err := c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for err == nil {
		_, err = c.Write(numbers)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 4500*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}
