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
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"oddsgraph/httpapi/writev"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an HTTP server with writev.Server and writev.Listener. It returns the address of the server.
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

// text returns the first n bytes of a text of consecutive numbers. A lost or repeated part changes the text.
func text(n int) []byte { return numbers[:n] }

// TestResponsesArriveWhole checks that bodies of up to 100 KB arrive complete. Many of the sizes are near a multiple of the
// buffer's size. Responses to HEAD must have no body.
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
			t.Errorf("%s: Write returned %d bytes and the error %v, want %d bytes", r.URL, n, err, size)
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
						t.Fatalf("%s %s: the client read %d bytes with the error %v, want %d bytes", method, r.URL, len(got), err, len(want))
					}
				}
			}
		}
	}
}

// TestAPanicLosesNothing checks that the client gets the whole body if the handler panics after Write.
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
			t.Errorf("the client read %d bytes with the error %v, want %d bytes", len(got), err, size)
		}
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestOtherWriters checks that Write also works without a connection from a Listener.
func TestOtherWriters(t *testing.T) {
	var b bytes.Buffer
	if n, err := writev.Write(context.Background(), &b, text(5000)); n != 5000 || err != nil || !bytes.Equal(b.Bytes(), text(5000)) {
		t.Errorf("Write returned %d bytes and the error %v, and wrote %d bytes; want 5000 bytes", n, err, b.Len())
	}
}
