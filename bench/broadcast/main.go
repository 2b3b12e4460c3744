// Command broadcast is the simplest possible subscription server. It sends the body of each POST to every connected WebSocket,
// with one goroutine per WebSocket.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/coder/websocket"

	_ "oddsgraph/bench/probe"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8084", "host:port to serve on")
	flag.Parse()
	fmt.Fprintln(os.Stderr, "broadcast:", http.ListenAndServe(*listen, newHandler()))
	os.Exit(1)
}

// maxUnsent is the number of unsent messages that a listener may have. The server closes a listener that would have more.
const maxUnsent = 16

// hub is the set of connected listeners.
type hub struct {
	mu        sync.Mutex
	listeners map[chan []byte]struct{}
}

func newHandler() http.Handler {
	h := &hub{listeners: make(map[chan []byte]struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /graphql", h.listen)
	mux.HandleFunc("POST /broadcast", h.broadcast)
	return mux
}

// broadcast sends the body of the request to all listeners.
func (h *hub) broadcast(w http.ResponseWriter, r *http.Request) {
	message, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	for l := range h.listeners {
		select {
		case l <- message:
		default:
			delete(h.listeners, l)
			close(l)
		}
	}
	h.mu.Unlock()
	w.Header().Set("Content-Length", "0")
}

func (h *hub) listen(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return // Accept has written the error response
	}
	defer conn.CloseNow()
	ctx := conn.CloseRead(context.Background())
	l := make(chan []byte, maxUnsent)
	h.mu.Lock()
	h.listeners[l] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.listeners, l)
		h.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case message, ok := <-l:
			if !ok || conn.Write(ctx, websocket.MessageText, message) != nil {
				return
			}
		}
	}
}
