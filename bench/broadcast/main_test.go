package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestBroadcast(t *testing.T) {
	s := httptest.NewServer(newHandler())
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var conns []*websocket.Conn
	for range 3 {
		c, _, err := websocket.Dial(ctx, s.URL+"/graphql", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		conns = append(conns, c)
	}
	// The server may register a socket after Dial has returned. Such a socket misses the first messages. So the test posts messages
	// until every socket has received one.
	heard := make(chan error, len(conns))
	for _, c := range conns {
		go func() {
			_, b, err := c.Read(ctx)
			if err == nil && string(b) != "hello" {
				t.Errorf("got the message %q, want hello", b)
			}
			heard <- err
		}()
	}
	for n := 0; n < len(conns); {
		resp, err := http.Post(s.URL+"/broadcast", "", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		select {
		case err := <-heard:
			if err != nil {
				t.Fatal(err)
			}
			n++
		default:
		}
	}
}
