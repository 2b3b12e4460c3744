package e2e

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oddsgraph/app"
	"oddsgraph/httpapi"
)

// TestBoardsOfOneAddress opens the pages of different markets on sockets of one client address, with the subscriptions of the board.
// With the shipped memory, the program must refuse none of them, and each must get its first event.
func TestBoardsOfOneAddress(t *testing.T) {
	const people = 150
	venue := newWitness(t)
	p := &target{program: runBinaryIn(t, []string{"GOMEMLIMIT=" + shippedMemory}, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.program.venue = venue.venue
	documents := map[string]string{}
	for _, name := range []string{"Prices", "Market", "Book", "Trades"} {
		documents[name] = boardSubscription(t, name)
	}
	var subscriptions []string
	for _, m := range venue.venue.Markets() {
		if m.Status != "OPEN" || !m.Binary || len(subscriptions) == people {
			continue
		}
		text := ""
		for name, variables := range map[string]vars{
			"Prices": {"tokenIds": m.TokenIDs}, "Market": {"marketId": m.MarketID}, "Book": {"tokenId": m.TokenIDs[0], "depth": 10}, "Trades": {"tokenId": m.TokenIDs[0]},
		} {
			text += textFrame(asJSON(vars{"id": name, "type": "subscribe", "payload": vars{"query": documents[name], "variables": variables}}))
		}
		subscriptions = append(subscriptions, text)
	}
	if len(subscriptions) != people {
		t.Fatalf("the venue has %d open binary markets, want %d", len(subscriptions), people)
	}
	var first atomic.Int64
	var reading sync.WaitGroup
	defer reading.Wait()
	for _, text := range subscriptions {
		conn, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		w := &wire{conn, bufio.NewReaderSize(conn, 1<<10)}
		if err := w.handshake("10.30.0.1"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, textFrame(initMessage)+text)
		reading.Go(func() { // ends when the test closes the connection
			seen := map[string]bool{}
			for _, payload, err := w.frame(); err == nil; _, payload, err = w.frame() {
				var f frame
				decode(t, string(payload), &f)
				switch {
				case f.Type == "error" || f.Type == "complete":
					t.Errorf("a subscription has ended: %.300s", payload)
				case f.Type == "next" && !seen[f.ID]:
					seen[f.ID] = true
					first.Add(1)
				}
			}
		})
	}
	eventually(t, "a first event of each subscription", func() bool { return first.Load() == 4*people })
	resident := memory(t, p.process, "VmHWM")
	t.Logf("the program used at most %d MiB", resident>>20)
	if resident > mostResident {
		t.Errorf("the program used %d MiB, want at most %d MiB", resident>>20, uint64(mostResident)>>20)
	}
}

// TestAccountsBehindOneAddress checks that accounts behind one address do not share a limit, and that invented credentials give no
// limit of their own.
func TestAccountsBehindOneAddress(t *testing.T) {
	s, _ := startLiveRigged(t, func(w *app.Wiring) {
		w.Front = func(front *httpapi.Config) { front.Clients.Executions = 6 } // all clients together may have 8
	})
	s.waitForStream(t)
	ids := s.openTokens(10)
	next := 0
	// watch subscribes to n more tokens. It expects that the last subscription is refused if refused is true.
	watch := func(k *socket, n int, refused bool) {
		t.Helper()
		for i := range n {
			e := k.subscribe(t, subBook, vars{"id": ids[next]})
			next++
			if refused && i == n-1 {
				if ev := e.next(t); !ev.refused || !strings.Contains(ev.errors[0].Message, "6 different subscriptions at once of one client address; the operator can raise --client-operations") {
					t.Errorf("got %+v, want RATE_LIMITED with the name of the flag", ev)
				}
				continue
			}
			e.value(t)
		}
	}
	watch(s.dial(t, anonymous), 6, false)
	watch(s.dial(t, credentials("invented")), 1, true)
	watch(s.dial(t, anonymous), 1, true)
	for key, address := range map[string]string{keyOf3: addressOf3, keyOf50: addressOf50} {
		s.ask(t, `query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`, vars{"a": address}, key)
		watch(s.dial(t, key), 1, false)
	}
}
