package graphqlws_test

import (
	"bufio"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/tests/tool"
)

// listeners are clients that count frames. They allocate nothing, so that the test measures only the server's allocations.
type listeners struct {
	t       testing.TB
	wanted  atomic.Int64 // number of frames that have not arrived yet
	arrived chan struct{}
}

// listen connects n clients and starts one subscription for each. The largest frame has the given size in bytes.
func listen(t testing.TB, address, query string, n, size int) *listeners {
	l := &listeners{t: t, arrived: make(chan struct{}, 1)}
	for range n {
		r := dialRaw(t, address)
		_ = r.SetDeadline(time.Time{})
		r.say(initialise, subscribing("1", query))
		if _, _, err := r.hear(); err != nil {
			t.Fatal(err)
		}
		go l.follow(r.in, make([]byte, size)) // returns when the connection ends
	}
	return l
}

func (l *listeners) follow(in *bufio.Reader, buf []byte) {
	for {
		if _, _, err := readFrame(in, buf); err != nil {
			return
		}
		if l.wanted.Add(-1) == 0 {
			l.arrived <- struct{}{}
		}
	}
}

// hear calls send and waits until the clients have received the given number of frames.
func (l *listeners) hear(frames int, send func()) {
	l.wanted.Store(int64(frames))
	send()
	select {
	case <-l.arrived:
	case <-time.After(patience):
		l.t.Fatal("an event has not arrived")
	}
}

func price(size int) []byte {
	return fmt.Appendf(nil, `{"data":{"priceChanged":{"price":"0.5","note":"%s"}}}`, strings.Repeat("x", size))
}

// TestAllocations checks that the delivery of an event costs at most one allocation for each socket of a group.
func TestAllocations(t *testing.T) {
	if tool.Unraced(t) {
		return
	}
	const sockets, events = 200, 20
	for _, size := range []int{100, 10_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			o := newOperator()
			s := serve(t, graphqlws.Config{}, o)
			l := listen(t, s.http.Listener.Addr().String(), "subscription a", sockets, size+200)
			o.awaitMembers(t, sockets)
			payload := price(size)
			perEvent := testing.AllocsPerRun(events, func() {
				l.hear(sockets, func() { s.publish(t, "subscription a", payload, follow.Replace) })
			})
			t.Logf("%.2f allocations for each delivery", perEvent/sockets)
			if perEvent > sockets {
				t.Errorf("%.2f allocations for each delivery", perEvent/sockets)
			}
		})
	}
}
