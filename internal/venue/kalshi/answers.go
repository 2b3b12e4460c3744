package kalshi

import (
	"slices"

	"oddsgraph/internal/venue/stream"
)

func (c *codec) subscribed(f received) []stream.Event {
	sid, ok := f.msg.Of(fieldSID).Uint()
	sent := c.unanswered[f.id]
	name := f.msg.Text(fieldChannel)
	for channel, own := range channels {
		if ok && sid > 0 && own == name && c.sids[sid] == nil {
			c.sids[sid] = &subscription{channel: channel}
		}
	}
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && channels[sub.channel] == name {
			state.sid = sid
		}
	}
	return c.confirm(f.id)
}

// answered handles the response to a command that neither starts nor ends a subscription.
func (c *codec) answered(f received) []stream.Event {
	sent := c.unanswered[f.id]
	if sent.action == actionAdd && c.sids[sent.sid] == nil { // the subscription has ended since the command was sent
		return c.reject(f.id, codeUnknownSID)
	}
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && sent.action == actionAdd {
			state.sid = sent.sid
		}
	}
	events := c.confirm(f.id)
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; sent.action == "" && state != nil && state.last != nil {
			events = append(events, c.prices(sub.ticker, state)...)
		}
	}
	return events
}

func (c *codec) ended(f received) []stream.Event {
	delete(c.sids, f.sid)
	return c.confirm(f.id)
}

func (c *codec) confirm(id uint64) []stream.Event {
	sent, ok := c.unanswered[id]
	if !ok {
		return nil
	}
	delete(c.unanswered, id)
	return []stream.Event{{Kind: stream.EventAck, Rid: sent.rid, Topics: sent.topics}}
}

// These are the error codes that the codec handles separately. The venue ends the subscription after codeChannelError and
// codeOverflow.
const (
	codeUnknownSID   = 7
	codeChannelError = 10
	codeOverflow     = 25
	codeFull         = 26
)

// laterCodes contains the codes of temporary errors: a later command of the same form may succeed.
var laterCodes = []uint64{1, codeUnknownSID, codeChannelError, 18, codeOverflow, codeFull, 27}

func (c *codec) failure(f received) []stream.Event {
	code, _ := f.msg.Of(fieldCode).Uint()
	sent := c.unanswered[f.id]
	sid := f.sid
	if sid == 0 && code == codeUnknownSID {
		sid = sent.sid
	}
	var events []stream.Event
	switch {
	case sid != 0 && (code == codeUnknownSID || code == codeChannelError || code == codeOverflow):
		c.observer.Drift("subscription ended")
		events = c.numbers.Lose(c.forget(sid)...)
	case code == codeFull && c.sids[sent.sid] != nil:
		c.sids[sent.sid].full = true
	}
	return append(events, c.reject(f.id, code)...)
}

func (c *codec) reject(id, code uint64) []stream.Event {
	sent, known := c.unanswered[id]
	if !known {
		return nil
	}
	delete(c.unanswered, id)
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && state.sid == 0 {
			delete(c.subjects, sub) // the socket does not have the market, so the next request subscribes to it again
		}
	}
	e := stream.Event{Kind: stream.EventError, Rid: sent.rid, Code: "UNSUPPORTED"}
	if slices.Contains(laterCodes, code) {
		e.Code = "UNAVAILABLE"
	}
	return []stream.Event{e}
}
