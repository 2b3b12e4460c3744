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
	missing atomic.Int64 // number of frames that have not arrived yet
	arrived chan struct{}
}

// listen connects n clients and starts one subscription for each. The largest frame has the given size in bytes.
func listen(s *service, query string, n, size int) *listeners {
	l := &listeners{arrived: make(chan struct{}, 1)}
	for range n {
		r := s.raw()
		_ = r.SetDeadline(time.Time{})
		r.say(initialise, subscribing("1", query))
		r.expect(`{"type":"connection_ack"}`)
		go l.follow(r.in, make([]byte, size)) // returns when the connection ends
	}
	return l
}

func (l *listeners) follow(in *bufio.Reader, buf []byte) {
	for {
		if _, _, err := readFrame(in, buf); err != nil {
			return
		}
		if l.missing.Add(-1) == 0 {
			l.arrived <- struct{}{}
		}
	}
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
			l := listen(s, "subscription a", sockets, size+200)
			o.awaitMembers(t, sockets)
			payload := fmt.Appendf(nil, `{"data":{"priceChanged":{"price":"0.5","note":"%s"}}}`, strings.Repeat("x", size))
			perEvent := testing.AllocsPerRun(events, func() {
				l.missing.Store(sockets)
				s.publish(t, "subscription a", payload, follow.Replace)
				receive(t, l.arrived)
			})
			t.Logf("%.2f allocations for each delivery", perEvent/sockets)
			if perEvent > sockets {
				t.Errorf("the delivery to one socket takes %.2f allocations, want at most 1", perEvent/sockets)
			}
		})
	}
}
