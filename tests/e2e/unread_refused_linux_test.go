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
	// asJSON would also escape each <, so the request would be six times as long.
	return `{"query":"{` + strings.ReplaceAll(b.String(), `"`, `\"`) + `}"}`
}

// TestUnreadOutputBesidesResponses checks that the program withstands a client that tries to fill the program's memory with
// refusals, with variables of waiting operations, or with compressed responses.
func TestUnreadOutputBesidesResponses(t *testing.T) {
	for _, a := range []unreadAttack{
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

// queryOverSockets opens several WebSockets. On each WebSocket, it sends ten queries with large responses, and then ninety queries
// with the given body.
func (p *target) queryOverSockets(t *testing.T, sockets int, body string) (open []io.Closer) {
	first := echoQuery(3)
	return p.onConnections(t, sockets, func(w *wire) {
		if err := w.handshake(carelessClient); err != nil {
			t.Error(err)
			return
		}
		_ = w.SetWriteDeadline(time.Now().Add(8 * time.Second)) // the service stops reading from a socket whose client does not read
		_, _ = io.WriteString(w, textFrame(initMessage))
		for i := range 100 {
			payload := body
			if i < 10 {
				payload = first
			}
			if _, err := io.WriteString(w, textFrame(fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":%s}`, i, payload))); err != nil {
				return // the service no longer reads from the socket
			}
		}
	})
}

func unreadRefusals(t *testing.T, p *target) ([]io.Closer, string) {
	open := p.queryOverSockets(t, 80, wrongQuery())
	p.settle(t)
	return open, ""
}

func waitingVariables(t *testing.T, p *target) ([]io.Closer, string) {
	before := p.scrape(t).sum("oddsgraph_client_refusals_total")
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0240d", i)
	}
	open := p.queryOverSockets(t, 80, asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) { id } }`, "variables": vars{"i": ids}}))
	p.settle(t)
	if p.scrape(t).sum("oddsgraph_client_refusals_total") == before {
		t.Error("the program refused no operation; want refusals, because waiting operations hold their variables")
	}
	return open, ""
}

func unreadCompressed(t *testing.T, p *target) ([]io.Closer, string) {
	ids := make([]string, 440)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0120d%0120d", 7919*i, 104729*i)
	}
	body := asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) {` + repeatNumbered(50, "a#:id ") + `} }`, "variables": vars{"i": ids}})
	open := p.onConnections(t, 160, func(w *wire) {
		for range 30 {
			if _, err := fmt.Fprintf(w, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nAccept-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				carelessClient, len(body), body); err != nil {
				return
			}
		}
	})
	p.settle(t)
	return open, ""
}
