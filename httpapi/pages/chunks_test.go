package pages

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
)

// turns records the clients for which chunks are written, in the order of the writes.
type turns struct {
	mu      sync.Mutex
	clients []string
}

// recordingWriter is a ResponseWriter that never blocks and records its writes in the field turns.
type recordingWriter struct {
	http.ResponseWriter
	client string
	turns  *turns
}

func (r recordingWriter) Write(p []byte) (int, error) {
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	r.turns.clients = append(r.turns.clients, r.client)
	return r.ResponseWriter.Write(p)
}

// TestFilesTakeTurns checks that two clients that load a large file take turns. For at least half of the writes, the next write
// must be for the other client.
func TestFilesTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	content := make([]byte, 1<<20)
	files := layers{fstest.MapFS{"assets/large.js": &fstest.MapFile{Data: content}}}
	var order turns
	var serving sync.WaitGroup
	for _, client := range []string{"one", "two"} {
		serving.Go(func() {
			w := httptest.NewRecorder()
			files.serve(recordingWriter{w, client, &order}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/assets/large.js", nil), "assets/large.js")
			if w.Code != http.StatusOK || w.Body.Len() != len(content) {
				t.Errorf("client %s got the status %d and %d bytes, want 200 and %d bytes", client, w.Code, w.Body.Len(), len(content))
			}
		})
	}
	serving.Wait()
	changes := 0
	for i := range order.clients[1:] {
		if order.clients[i] != order.clients[i+1] {
			changes++
		}
	}
	if n := len(order.clients); n < 2*len(content)/chunk || changes < n/2 {
		t.Errorf("there were %d writes, and the client changed %d times; want at least %d writes and a change for half of them", n, changes, 2*len(content)/chunk)
	}
}
