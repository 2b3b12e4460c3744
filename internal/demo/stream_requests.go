package demo

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/demo/server"
)

// The codes of errors. Error frames use all codes except codeUnavailable. codeUnavailable is the code of the HTTP response if the
// venue refuses to open a stream.
const (
	codeUnavailable     = "UNAVAILABLE"
	codeBadRequest      = "BAD_REQUEST"
	codeUnknownType     = "UNKNOWN_TYPE"
	codeUnknownChannel  = "UNKNOWN_CHANNEL"
	codeUnknownToken    = "UNKNOWN_TOKEN"
	codeUnknownMarket   = "UNKNOWN_MARKET"
	codeNotSubscribed   = "NOT_SUBSCRIBED"
	codeTooManyTopics   = "TOO_MANY_TOPICS"
	codeRateLimited     = "RATE_LIMITED"
	codeUnauthenticated = "UNAUTHENTICATED"
	codeForbidden       = "FORBIDDEN"
)

const maxAddresses = 100

type request struct {
	Type        string          `json:"type"`
	Rid         string          `json:"rid"`
	Channel     string          `json:"channel"`
	TokenID     string          `json:"tokenId"`
	TokenIDs    []string        `json:"tokenIds"`
	MarketID    string          `json:"marketId"`
	MarketIDs   []string        `json:"marketIds"`
	Address     string          `json:"address"`
	Credentials json.RawMessage `json:"credentials"`
}

func (c *streamConn) refuse(rid, code, text string) {
	c.Push(finishFrame(frameError, errorFrame(rid, code, text)))
}

func (c *streamConn) refuseID(rid, code, text string, ch channel, id string) {
	c.Push(finishFrame(frameError, addText(errorFrame(rid, code, text), idName(ch), id)))
}

// Receive runs a request.
func (c *streamConn) Receive(message []byte, text bool) {
	var r request
	bad := !text || json.Unmarshal(message, &r) != nil || len(r.Rid) > maxID
	if bad {
		r = request{}
	}
	now := time.Now()
	perSecond := c.v.stream.framesPerSecond
	if wait, _, _ := c.received.Take("", 2*perSecond, now, false); wait > 0 {
		c.refuse(r.Rid, codeRateLimited, "more than twice the allowed number of frames a second")
		c.Shut(CloseAbuse, "too many frames", false)
		return
	}
	if wait, _, _ := c.handled.Take("", perSecond, now, false); wait > 0 {
		b := errorFrame(r.Rid, codeRateLimited, "more than "+strconv.Itoa(perSecond)+" frames a second")
		c.Push(finishFrame(frameError, addNumber(b, "retryAfterMs", uint64(wait.Milliseconds())+1)))
		return
	}
	switch {
	case bad:
		c.refuse("", codeBadRequest, "the frame is not a JSON object of the documented form")
	case r.Type == "ping":
		c.Push(finishFrame(framePong, answerFrame(framePong, r.Rid, 64)))
	case r.Type == "auth":
		c.authenticate(&r)
	case r.Type == "subscribe" || r.Type == "unsubscribe" || r.Type == "resync":
		c.topicRequest(&r)
	default:
		c.refuse(r.Rid, codeUnknownType, "type is subscribe, unsubscribe, resync, auth or ping")
	}
}

// authenticate opens the user channel for an address. The rules for credentials and addresses are those of the REST API.
func (c *streamConn) authenticate(r *request) {
	address, ok := parseAddress(r.Address)
	account := c.v.accountFor(r.Credentials)
	switch {
	case account == nil:
		c.refuse(r.Rid, codeUnauthenticated, errKey.text)
		c.Shut(CloseCredentials, "the credentials are not valid", false)
	case !ok:
		c.refuse(r.Rid, codeBadRequest, "address is 0x and 40 hexadecimal digits")
	case account.address != "" && account.address != address:
		c.refuse(r.Rid, codeForbidden, errOwner.text)
	case len(c.addresses) >= maxAddresses && !c.addresses[address]:
		c.refuse(r.Rid, codeTooManyTopics, "at most "+strconv.Itoa(maxAddresses)+" addresses")
	default:
		c.addresses[address] = true
		b := answerFrame(frameAuthenticated, r.Rid, 128)
		c.Push(finishFrame(frameAuthenticated, addText(b, "address", address)))
	}
}

// topicRequest runs a subscribe, unsubscribe or resync request. On a channel of tokens, a market id means all tokens of
// the market.
func (c *streamConn) topicRequest(r *request) {
	i := slices.Index(channelNames[:], r.Channel)
	if i < 0 {
		c.refuse(r.Rid, codeUnknownChannel, "channel is prices, orderbook, trades, market or user")
		return
	}
	ch := channel(i)
	if ch == channelUser {
		c.userRequest(r)
		return
	}
	tokens, markets := r.ids(ch)
	if len(tokens)+len(markets) == 0 {
		c.refuse(r.Rid, codeBadRequest, idName(ch)+"s is missing")
		return
	}
	known, unknownTokens, unknownMarkets := c.v.listing.resolve(ch, tokens, markets)
	c.act(r, ch, known, func() {
		for _, id := range unknownTokens {
			c.refuseID(r.Rid, codeUnknownToken, "unknown token", channelPrices, clip(id))
		}
		for _, id := range unknownMarkets {
			c.refuseID(r.Rid, codeUnknownMarket, "unknown market", channelMarket, clip(id))
		}
	})
}

// ids returns the identifiers of a request. On the market channel, it ignores tokens.
func (r *request) ids(ch channel) (tokens, markets []string) {
	tokens, markets = r.TokenIDs, r.MarketIDs
	if r.TokenID != "" {
		tokens = append(tokens, r.TokenID)
	}
	if r.MarketID != "" {
		markets = append(markets, r.MarketID)
	}
	if ch == channelMarket {
		tokens = nil
	}
	return tokens, markets
}

// resolve returns the ids of the channel's topics for the given tokens and markets, without duplicates. It returns unknown ids
// separately.
func (u *universe) resolve(ch channel, tokens, markets []string) (known, unknownTokens, unknownMarkets []string) {
	known = make([]string, 0, len(tokens)+len(markets))
	seen := make(map[string]bool, cap(known))
	know := func(id string) {
		if !seen[id] {
			seen[id] = true
			known = append(known, id)
		}
	}
	for _, id := range tokens {
		if u.tokenByID[id] != nil {
			know(id)
		} else {
			unknownTokens = append(unknownTokens, id)
		}
	}
	for _, id := range markets {
		m := u.marketByID[id]
		switch {
		case m == nil:
			unknownMarkets = append(unknownMarkets, id)
		case ch == channelMarket:
			know(id)
		default:
			for _, t := range m.tokens {
				know(t.id)
			}
		}
	}
	return known, unknownTokens, unknownMarkets
}

func clip(id string) string { return id[:min(len(id), maxID)] }

// userRequest runs a subscribe, unsubscribe or resync request on the user channel.
func (c *streamConn) userRequest(r *request) {
	address, ok := parseAddress(r.Address)
	switch {
	case len(c.addresses) == 0:
		c.refuse(r.Rid, codeUnauthenticated, errKey.text)
	case !ok:
		c.refuse(r.Rid, codeBadRequest, "address is 0x and 40 hexadecimal digits")
	case !c.addresses[address]:
		c.refuseID(r.Rid, codeForbidden, errOwner.text, channelUser, address)
	default:
		c.act(r, channelUser, []string{address}, func() {})
	}
}

// act runs a request for known identifiers. It queues, in this order, the answer to a subscribe or unsubscribe request, errors, and
// the snapshots that the request causes. A resync of an identifier without a subscription causes an error instead of a snapshot.
// reportUnknown queues the errors for the request's unknown identifiers.
func (c *streamConn) act(r *request, ch channel, ids []string, reportUnknown func()) {
	switch r.Type {
	case "subscribe":
		ids, refused := c.admit(ch, ids)
		if len(ids) > 0 {
			c.Push(ackFrame(frameSubscribed, r.Rid, ch, ids))
		}
		reportUnknown()
		if len(refused) > 0 {
			b := errorFrame(r.Rid, codeTooManyTopics, "no more than "+strconv.Itoa(maxTopics)+" topics; not subscribed: "+abbreviate(refused))
			c.Push(finishFrame(frameError, addIDs(b, ch, refused)))
		}
		for _, id := range ids {
			c.subscribe(topicKey{ch, id})
		}
	case "unsubscribe":
		c.v.mu.Lock()
		for _, id := range ids {
			c.v.leave(c, topicKey{ch, id})
		}
		c.v.mu.Unlock()
		if len(ids) > 0 {
			c.Push(ackFrame(frameUnsubscribed, r.Rid, ch, ids))
		}
		reportUnknown()
	default:
		reportUnknown()
		for _, id := range ids {
			t := c.subs[topicKey{ch, id}]
			if t == nil {
				c.refuseID(r.Rid, codeNotSubscribed, "there is no such subscription", ch, id)
				continue
			}
			c.v.counts.Add(server.Resyncs, channelNames[ch], 1)
			c.v.mu.RLock()
			t.sendSnapshot(c)
			c.v.mu.RUnlock()
		}
	}
}

// admit splits the identifiers of a subscribe request. The connection's limit of topics allows the identifiers in taken, but not
// the identifiers in refused.
func (c *streamConn) admit(ch channel, ids []string) (taken, refused []string) {
	left := maxTopics - len(c.subs)
	for _, id := range ids {
		if c.subs[topicKey{ch, id}] == nil {
			if left == 0 {
				refused = append(refused, id)
				continue
			}
			left--
		}
		taken = append(taken, id)
	}
	return taken, refused
}

func (c *streamConn) subscribe(key topicKey) {
	v := c.v
	var subj subject
	switch key.channel {
	case channelMarket:
		subj.market = v.listing.marketByID[key.id]
	case channelUser:
		subj.wallet = v.walletOf(key.id)
	default:
		subj.token = v.listing.tokenByID[key.id]
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.join(c, key, subj)
}
