package httpapi

import (
	"bytes"
	"net/http"
	"net/netip"
	"slices"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// transportNames are the names of the transports.
var transportNames = [...]string{transportHTTP, transportWebSocket, transportEvents}

// room is what a response takes of the memory for output, from its first bytes until its client has them. It is an exec.Room. The
// first quota.FreeBytes cost nothing. It is for one goroutine at a time.
type room struct {
	engine    *engine // nil takes nothing
	transport string
	client    netip.Addr
	// most is the greatest size of the response; held is what it takes of the memory.
	most, held int
	// refused is why the response has no more room.
	refused error
}

// newRoom returns the room for a response to a client over a transport.
func (e *engine) newRoom(client netip.Addr, transport string) room {
	return room{engine: e, transport: transport, client: client, most: e.cfg.MaxResponse}
}

// Grow implements exec.Room.
func (r *room) Grow(size int) (limit int, err error) {
	r.refused = nil
	if size > r.most {
		return 0, r.tooLarge()
	}
	limit = min(max(size+size/2, quota.FreeBytes), r.most)
	if !r.hold(limit) {
		return 0, r.refused
	}
	return limit, nil
}

// tooLarge refuses a response for its size.
func (r *room) tooLarge() error {
	r.refused = market.Errorf(market.CodeResponseTooLarge,
		"the response has more than %d bytes; ask for less at once: fewer items, fields or aliases", r.most)
	return r.refused
}

// hold takes what a response of a size needs, or says why it can't.
func (r *room) hold(size int) bool {
	if !r.take(size) {
		r.refused = r.engine.unread(r.transport)
		return false
	}
	return true
}

// take takes what a response of a size needs, or reports false.
func (r *room) take(size int) bool {
	if more := size - quota.FreeBytes - r.held; r.engine != nil && more > 0 {
		if !r.engine.outgoing.Take(quota.Network(r.client), more) {
			return false
		}
		r.held += more
	}
	return true
}

// fit takes what a whole response needs and nothing else. The buffer that it returns takes the place of buf, which may have been used
// for a longer one and have no room as it is.
func (r *room) fit(buf *bytes.Buffer) *bytes.Buffer {
	if !r.take(buf.Cap()) {
		small := bytes.NewBuffer(bytes.Clone(buf.Bytes()))
		putBuffer(buf)
		buf = small
	}
	r.settle(buf.Cap())
	return buf
}

// settle gives back what a response of a size does not need. The size 0 gives back all.
func (r *room) settle(size int) {
	if less := r.held - max(size-quota.FreeBytes, 0); less > 0 {
		r.engine.outgoing.Give(quota.Network(r.client), less)
		r.held -= less
	}
}

// crowded reports whether the response has no room beside others, though it is not too large.
func (r *room) crowded() bool {
	_, refused := r.refused.(*refusal)
	return refused
}

// status returns the status of a response that was executed in the room.
func (r *room) status(executed int) int {
	if r.crowded() {
		return http.StatusServiceUnavailable
	}
	return executed
}

// unread counts a response that has no room beside others, and returns its refusal.
func (e *engine) unread(transport string) error {
	e.leftUnread[slices.Index(transportNames[:], transport)].Add(1)
	err := market.Errorf(market.CodeRateLimited, "too many responses are not read yet; read them, and try again in a moment")
	err.RetryAfter = retryAfter
	return &refusal{http.StatusServiceUnavailable, err}
}
