package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
)

// Sockets says how WebSockets behave. The zero value of a field takes its default.
type Sockets struct {
	// InitTimeout is how long a client may take to introduce itself, 10 s; Ping the time between two pings, 25 s.
	InitTimeout, Ping time.Duration
	// Operations is the greatest number of operations at once on one socket: 100.
	Operations int
	// Frame is the greatest size of a client's message in bytes: 256 KiB.
	Frame int64
}

// Stats are the figures of what stays open for events, and of the responses that are kept.
type Stats struct {
	// Executing operations are under way, over any transport, those that wait for the venue included; Waiting ones are to be when there is room.
	Executing, Waiting int
	// Compiling documents are parsed, validated and compiled, over any transport; CompilingLater ones are to be in their turn.
	Compiling, CompilingLater int
	Groups                    fanout.Stats
	Sockets                   graphqlws.Stats
	// Streams are the event streams that are open now.
	Streams int
	// Refused counts what was beyond the quota of its client address.
	Refused uint64
	// Crowded counts the bodies and messages for which there was no room beside others.
	Crowded uint64
	// Output is how many bytes of responses and events wait to be read by clients now, beyond the first of each that are free.
	Output int
	// Unread counts by transport the responses that were refused, and the sockets and streams that were ended, because their client
	// left too much unread.
	Unread map[string]uint64
	// Responses is zero where none are kept.
	Responses respcache.Stats
}

// transports leads requests for the endpoint to the transport that they ask for.
type transports struct {
	*graphQL
	subscriptions *subscriptions
	sockets       *graphqlws.Server
	events        *events
	clients       *quota.Clients
}

func newTransports(g *graphQL, pages *origins, cfg Config) *transports {
	clients := quota.New(cfg.Clients)
	t := &transports{graphQL: g, subscriptions: newSubscriptions(g.engine, clients, g.gates.enter), clients: clients}
	t.events = newEvents(t.subscriptions, t.clients)
	t.sockets = graphqlws.New(graphqlws.Config{
		Operator: &operator{t.subscriptions, g.engine.identities}, CheckOrigin: pages.check, Client: clientOf, Quota: t.clients, Incoming: g.incoming, Log: socketLog(cfg.Log),
		InitTimeout: cfg.Sockets.InitTimeout, Ping: cfg.Sockets.Ping, Operations: cfg.Sockets.Operations, Frame: cfg.Sockets.Frame,
	})
	return t
}

func socketLog(log *slog.Logger) *slog.Logger { return log.With("transport", graphqlws.Subprotocol) }

// clientOf returns the address that a request comes from, which was found out with its identity.
func clientOf(r *http.Request) netip.Addr { return identityFrom(r.Context()).client }

// serve answers a request by the transport that it asks for.
func (t *transports) serve(w http.ResponseWriter, r *request) {
	switch {
	case strings.EqualFold(r.said("Upgrade"), "websocket"):
		ctx := t.engine.identities.reading(r.lasting())
		if said := introduce(r.Header, nil); said != nil {
			ctx = context.WithValue(ctx, saidKey{}, said)
		}
		t.sockets.ServeHTTP(w, r.plain(ctx))
	case r.Method != http.MethodOptions && r.accepted.events:
		t.stream(w, r)
	default:
		t.graphQL.serve(w, r)
	}
}

// stream serves a request that wants a stream of events and nothing else.
func (t *transports) stream(w http.ResponseWriter, r *request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		t.refuse(w, r, refuseAs(http.StatusMethodNotAllowed, "a stream of events is asked for by POST or GET"))
		return
	}
	text, err := t.readText(w, r)
	j := t.engine.begin(r.Context(), transportEvents, r.Header)
	if err == nil {
		release := sync.OnceFunc(text.Release)
		defer release()
		var p *params
		if p, err = t.parseText(r, text.Bytes()); err == nil {
			err = t.events.serve(t.engine.identities.reading(r.lasting()), w, j, p, release)
		}
	}
	if err != nil {
		t.turnDown(w, r, j, err)
	}
}

// drain ends what stays open for events, after what ends by itself, as long as ctx lasts.
func (t *transports) drain(ctx context.Context) {
	t.events.close()
	t.sockets.Drain(ctx)
	t.events.streams.Wait() // each ends with its request, which the server waits for
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
	out.Executing, out.Waiting = t.gates.stats()
	out.Compiling, out.CompilingLater = t.engine.compiling.stats()
	if kept := t.engine.responses; kept != nil {
		out.Responses = kept.Stats()
	}
	return out
}
