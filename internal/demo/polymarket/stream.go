package polymarket

import (
	"encoding/json"
	"net/http"
	"slices"

	"oddsgraph/internal/demo/server"
)

// StreamPath is the path of the market channel.
const StreamPath = "/ws/market"

// dumpBooks is the maximum number of books in one frame of an initial dump. assetLimit is the maximum number of tokens of a socket; the
// stream silently ignores subscriptions to more tokens.
const dumpBooks, assetLimit = 10, 500

// conn is a client of the market channel. Venue.mu guards all fields except the socket.
type conn struct {
	*server.Socket

	v      *Venue
	assets map[string]bool
	custom bool // the client wants the custom messages best_bid_ask, new_market and market_resolved
}

func (v *Venue) serveStream(w http.ResponseWriter, r *http.Request) {
	if !v.Sockets.Serve(w, r, func(s *server.Socket) server.Client { return &conn{Socket: s, v: v, assets: map[string]bool{}} }) {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
	}
}

// End implements [server.Client].
func (c *conn) End() {
	c.v.mu.Lock()
	defer c.v.mu.Unlock()
	for id := range c.assets {
		delete(c.v.tokens[id].market.subs, c)
	}
}

// Stats returns the counts. The names of requests are path patterns such as "POST /books".
func (v *Venue) Stats() server.Stats {
	s := v.Dialect.Stats()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, socket := range v.Sockets.All() {
		s.Stream.Subscriptions["market"] += int64(len(socket.Client.(*conn).assets))
	}
	return s
}

// Receive implements [server.Client].
func (c *conn) Receive(message []byte, _ bool) {
	if string(message) == "PING" {
		c.Push(server.Frame{Data: []byte("PONG")})
		return
	}
	in := struct {
		Assets      []string `json:"assets_ids"`
		Type        string   `json:"type"`
		Operation   string   `json:"operation"`
		InitialDump *bool    `json:"initial_dump"`
		Custom      *bool    `json:"custom_feature_enabled"`
	}{}
	if err := json.Unmarshal(message, &in); err != nil || in.Operation == "" && in.Type != "market" ||
		!slices.Contains([]string{"", "subscribe", "unsubscribe"}, in.Operation) {
		c.Push(server.Frame{Data: []byte("INVALID OPERATION")})
		return
	}
	v := c.v
	v.mu.Lock()
	defer v.mu.Unlock()
	if in.Custom != nil {
		c.custom = *in.Custom
	}
	if in.Operation == "unsubscribe" {
		for _, id := range in.Assets {
			v.leave(c, id)
		}
		return
	}
	var dump []object
	for _, id := range in.Assets {
		if t, ok := v.tokens[id]; ok && v.join(c, id) && t.market.hasBooks() && (in.InitialDump == nil || *in.InitialDump) {
			dump = append(dump, t.market.streamedBook(t.index))
		}
	}
	for part := range slices.Chunk(dump, dumpBooks) {
		c.Push(server.Frame{Kind: "book", Data: server.Encode(part)})
	}
}

// join subscribes a socket to a token. If the token is new to the socket and the socket already has the maximum number of tokens,
// join does nothing and returns false.
func (v *Venue) join(c *conn, id string) bool {
	t := v.tokens[id]
	if !c.assets[id] && len(c.assets) >= assetLimit {
		return false
	}
	c.assets[id] = true
	t.market.subs[c] |= 1 << t.index
	return true
}

func (v *Venue) leave(c *conn, id string) {
	if !c.assets[id] {
		return
	}
	delete(c.assets, id)
	t := v.tokens[id]
	if t.market.subs[c] &^= 1 << t.index; t.market.subs[c] == 0 {
		delete(t.market.subs, c)
	}
}

// send streams a message to each client that is subscribed to a token whose bit is set in mask. Bit i of mask represents token i of
// the market. Only clients with custom features get custom messages.
func (v *Venue) send(m *market, mask int, custom bool, message object) {
	if len(m.subs) == 0 {
		return
	}
	kind, _ := message["event_type"].(string)
	frame := server.Encode(message)
	for c, tokens := range m.subs {
		if tokens&mask != 0 && (c.custom || !custom) {
			c.Push(server.Frame{Kind: kind, Data: frame})
		}
	}
}

// sendResolved streams the result of a market to clients with custom features. It does nothing if the market has no winner.
func (v *Venue) sendResolved(m *market) {
	w := m.winner()
	if w < 0 {
		return
	}
	v.send(m, 3, true, object{
		"event_type": "market_resolved", "id": m.id, "market": m.conditionID, "assets_ids": m.tokenIDs, "winning_asset_id": m.tokenIDs[w],
		"winning_outcome": m.labels[w], "timestamp": stampOf(v.Clock.Now()), "tags": m.state.Tags,
	})
}

func (v *Venue) sendNew(m *market) {
	frame := server.Encode(object{
		"event_type": "new_market", "id": m.id, "question": m.question, "market": m.conditionID, "slug": m.slug, "description": m.state.Description,
		"assets_ids": m.tokenIDs, "outcomes": m.labels, "timestamp": stampOf(v.Clock.Now()), "tags": m.state.Tags,
		"condition_id": m.conditionID, "active": true, "clob_token_ids": m.tokenIDs, "sports_market_type": "", "line": "", "game_start_time": "",
		"order_price_min_tick_size": m.state.TickSize.String(), "group_item_title": m.group,
		"event_message": object{
			"id": m.event.id, "ticker": m.event.slug, "slug": m.event.slug, "title": m.event.title, "description": m.state.Description,
		},
	})
	for _, s := range v.Sockets.All() {
		if c := s.Client.(*conn); c.custom {
			c.Push(server.Frame{Kind: "new_market", Data: frame})
		}
	}
}
