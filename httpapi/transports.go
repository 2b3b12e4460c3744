package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/httpapi/origins"
	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
)

// Stats are figures of operations, subscriptions, connections and the response cache.
type Stats struct {
	// Executing is the number of running operations of all transports, including operations that wait for the venue. Waiting is the
	// number of operations in the queue that Config.Queue bounds.
	Executing, Waiting int
	// Compiling is the number of documents that are being parsed, validated and compiled. CompilingLater is the number of documents
	// that wait to be compiled.
	Compiling, CompilingLater int
	Groups                    fanout.Stats
	Sockets                   graphqlws.Stats
	// Streams is the number of open event streams.
	Streams int
	// Refused counts connections and operations that were refused because a client had reached one of its limits.
	Refused uint64
	// Crowded counts request bodies and WebSocket messages that were refused because their client may use no more memory for them.
	Crowded uint64
	// Output is the number of bytes of responses and events that clients have not read yet. It excludes the first quota.FreeBytes of a
	// response over HTTP, and the first 2 KiB of each operation on an event stream or a WebSocket.
	Output int
	// Unread counts, for each transport, the responses, sockets and streams that failed because the client did not read.
	Unread map[string]uint64
	// Responses is zero if the response cache is disabled.
	Responses respcache.Stats
}

// transports serves the GraphQL endpoint by the transport that a request uses.
type transports struct {
	*graphQL
	subscriptions *subscriptions
	sockets       *graphqlws.Server
	events        *events
	clients       *quota.Clients
}

func newTransports(g *graphQL, allowed *origins.Origins, cfg Config) *transports {
	clients := quota.New(cfg.Clients)
	t := &transports{graphQL: g, subscriptions: newSubscriptions(g.engine, clients, g.places.Begin), clients: clients}
	t.events = newEvents(t.subscriptions, t.clients)
	t.sockets = graphqlws.New(graphqlws.Config{
		Operator: t.subscriptions, CheckOrigin: allowed.Check, Address: addressOf, Quota: t.clients, Incoming: g.incoming, Frame: cfg.MaxBody,
	})
	return t
}

func addressOf(r *http.Request) netip.Addr { return identityFrom(r.Context()).address }

// ServeHTTP identifies the sender of a request, and serves the request if the sender is not refused.
func (t *transports) ServeHTTP(w http.ResponseWriter, plain *http.Request) {
	r, err := t.engine.identities.fromHeaders(plain)
	if err != nil {
		t.reject(w, r, err)
		return
	}
	switch {
	case strings.EqualFold(r.header("Upgrade"), "websocket"):
		t.sockets.ServeHTTP(w, r.plain(t.engine.identities.reading(r.connectionContext(readHints(r.Header, nil)), nil)))
	case r.Method != http.MethodOptions && r.Accepted.Events:
		t.stream(w, r)
	default:
		t.graphQL.serve(w, r)
	}
}

// stream serves a request that accepts only an event stream.
func (t *transports) stream(w http.ResponseWriter, r *httpRequest) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		t.reject(w, r, httpErrorf(http.StatusMethodNotAllowed, "request an event stream by POST or GET"))
		return
	}
	text, err := t.readText(w, r)
	log := t.engine.newLog(r.Context(), transportEvents, r.Header)
	if err == nil {
		release := sync.OnceFunc(text.Release)
		defer release()
		var p *params
		if p, err = t.parseText(r, text.Bytes()); err == nil {
			err = t.events.serve(t.engine.identities.reading(r.connectionContext(nil), nil), w, log, p, release)
		}
	}
	if err != nil {
		t.writeError(w, r, log, err)
	}
}

func (t *transports) drain(ctx context.Context) {
	t.events.close()
	t.sockets.Drain(ctx)
	t.events.streams.Wait() // needs no timeout, because each stream ends with its request and the HTTP server ends the requests
	t.subscriptions.hub.Close()
}

func (t *transports) stats() Stats {
	out := Stats{
		Groups: t.subscriptions.hub.Stats(), Sockets: t.sockets.Stats(), Streams: int(t.events.open.Load()), Refused: t.clients.Refused() + t.subscriptions.held.Refused(),
		Crowded: t.incoming.Refused(), Output: t.engine.outgoing.Held(),
	}
	out.Unread = make(map[string]uint64, len(transportNames))
	for i, name := range transportNames {
		out.Unread[name] = t.engine.leftUnread[i].Load()
	}
	out.Unread[transportWebSocket] += out.Sockets.Crowded
	out.Executing, out.Waiting = t.places.Stats()
	out.Compiling, out.CompilingLater = t.engine.compileLimiter.Stats()
	if cached := t.engine.responses; cached != nil {
		out.Responses = cached.Stats()
	}
	return out
}
