package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// wrongQuery returns a query with 50 errors. The message of each error quotes a text of 1 KB. In JSON, escapes make this text 6 KB.
func wrongQuery() string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, `a%d:searchMarkets(first:"%d%s"){nodes{id}} `, i, i, strings.Repeat("<", 1000))
	}
	return `{"query":"{` + strings.ReplaceAll(b.String(), `"`, `\"`) + `}"}` // not asJSON, which would already send the text with escapes
}

// TestUnreadOutputBesidesResponses checks that the program withstands a client that tries to fill the program's memory with
// refusals, with variables of waiting operations, or with compressed responses.
func TestUnreadOutputBesidesResponses(t *testing.T) {
	for _, a := range []unread{
		{"refusals over WebSockets", unreadRefusals},
		{"variables of queries that wait", waitingVariables},
		{"compressed responses", unreadCompressed},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", shippedMemory)
			venue := newWitness(t)
			p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
			p.begin(t)
			p.withstand(t, a)
		})
	}
}

// overSockets opens several WebSockets. It sends ten queries with large responses on each WebSocket, and then sends the parameter
// body ninety times.
func (p *target) overSockets(t *testing.T, sockets int, body string) (open []io.Closer) {
	first := echoed(3)
	return p.each(t, sockets, func(w *wire) {
		if err := w.handshake(careless); err != nil {
			t.Error(err)
			return
		}
		_ = w.SetWriteDeadline(time.Now().Add(8 * time.Second)) // the service stops reading from a socket whose client does not read
		_, _ = io.WriteString(w, say(sayInit))
		for i := range 100 {
			payload := body
			if i < 10 {
				payload = first
			}
			if _, err := io.WriteString(w, say(fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":%s}`, i, payload))); err != nil {
				return // the service reads no more
			}
		}
	})
}

func unreadRefusals(t *testing.T, p *target) ([]io.Closer, string) {
	open := p.overSockets(t, 80, wrongQuery())
	p.settle(t)
	return open, ""
}

func waitingVariables(t *testing.T, p *target) ([]io.Closer, string) {
	before := p.scrape(t).sum("oddsgraph_client_refusals_total")
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0240d", i)
	}
	open := p.overSockets(t, 80, asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) { id } }`, "variables": vars{"i": ids}}))
	p.settle(t)
	if p.scrape(t).sum("oddsgraph_client_refusals_total") == before {
		t.Error("there was room for all variables")
	}
	return open, ""
}

func unreadCompressed(t *testing.T, p *target) ([]io.Closer, string) {
	ids := make([]string, 440)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0120d%0120d", 7919*i, 104729*i)
	}
	body := asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) {` + numbered(50, "a#:id ") + `} }`, "variables": vars{"i": ids}})
	open := p.each(t, 160, func(w *wire) {
		for range 30 {
			if _, err := fmt.Fprintf(w, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nAccept-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				careless, len(body), body); err != nil {
				return
			}
		}
	})
	p.settle(t)
	return open, ""
}
