package httpapi

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
)

// turns records the client of each write, in the order of the writes.
type turns struct {
	mu sync.Mutex
	of []string
}

// recorded is a ResponseWriter that never blocks and records its writes in turns.
type recorded struct {
	http.ResponseWriter
	client string
	turns  *turns
}

func (r recorded) Write(p []byte) (int, error) {
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	r.turns.of = append(r.turns.of, r.client)
	return r.ResponseWriter.Write(p)
}

// TestFilesTakeTurns checks that two clients that load a large file take turns. For at least half of the writes, the next write
// must be for the other client.
func TestFilesTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	content := make([]byte, 1<<20)
	files := pages{fstest.MapFS{"assets/large.js": &fstest.MapFile{Data: content}}}
	var order turns
	var serving sync.WaitGroup
	for _, client := range []string{"one", "two"} {
		serving.Go(func() {
			w := httptest.NewRecorder()
			files.serve(recorded{w, client, &order}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/assets/large.js", nil), "assets/large.js")
			if w.Code != http.StatusOK || w.Body.Len() != len(content) {
				t.Errorf("%s: %d with %d bytes", client, w.Code, w.Body.Len())
			}
		})
	}
	serving.Wait()
	changes := 0
	for i := range order.of[1:] {
		if order.of[i] != order.of[i+1] {
			changes++
		}
	}
	if n := len(order.of); n < 2*len(content)/chunk || changes < n/2 {
		t.Errorf("%d writes changed between the clients %d times", n, changes)
	}
}
