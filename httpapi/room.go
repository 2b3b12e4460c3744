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

// room is a response's reservation in the output budget, from the first bytes of the response until the response was sent. The
// first quota.FreeBytes of a response need no reservation. room implements exec.Room. A room is not safe for concurrent use.
type room struct {
	engine    *engine // nil means that nothing is reserved
	transport string
	client    netip.Addr
	// limit bounds the size of the response. held is the reserved size. Both are in bytes.
	limit, held int
	// err is the error of a response that exceeds its limit or the budget.
	err error
}

// newRoom returns the room for a response to a client over a transport.
func (e *engine) newRoom(client netip.Addr, transport string) room {
	return room{engine: e, transport: transport, client: client, limit: e.cfg.MaxResponse}
}

// Grow implements exec.Room.
func (r *room) Grow(size int) (limit int, err error) {
	r.err = nil
	if size > r.limit {
		return 0, r.tooLarge()
	}
	limit = min(max(size+size/2, quota.FreeBytes), r.limit)
	if !r.hold(limit) {
		return 0, r.err
	}
	return limit, nil
}

// tooLarge sets and returns the error of a response that exceeds its limit.
func (r *room) tooLarge() error {
	r.err = market.Errorf(market.CodeResponseTooLarge,
		"the response has more than %d bytes; request fewer items, fields or aliases at once", r.limit)
	return r.err
}

// hold reserves memory for a response with a size. If that fails, it sets err and returns false.
func (r *room) hold(size int) bool {
	if !r.take(size) {
		r.err = r.engine.tooMuchUnread(r.transport)
		return false
	}
	return true
}

// take reserves memory for a response with a size. It returns false if not enough of the budget is left.
func (r *room) take(size int) bool {
	if more := size - quota.FreeBytes - r.held; r.engine != nil && more > 0 {
		if !r.engine.outgoing.Take(quota.Network(r.client), more) {
			return false
		}
		r.held += more
	}
	return true
}

// fit sets the reservation to the size of a complete response. If too little of the budget is left for the capacity of buf, fit
// returns a smaller copy of buf.
func (r *room) fit(buf *bytes.Buffer) *bytes.Buffer {
	if !r.take(buf.Cap()) {
		small := bytes.NewBuffer(bytes.Clone(buf.Bytes()))
		putBuffer(buf)
		buf = small
	}
	r.settle(buf.Cap())
	return buf
}

// settle reduces the reservation to a size. Size 0 releases all of it.
func (r *room) settle(size int) {
	if less := r.held - max(size-quota.FreeBytes, 0); less > 0 {
		r.engine.outgoing.Give(quota.Network(r.client), less)
		r.held -= less
	}
}

// overloaded reports whether the response failed because of the output budget, not because of its own limit.
func (r *room) overloaded() bool {
	_, refused := r.err.(*httpError)
	return refused
}

// status returns the HTTP status of the response. executed is the status if the room was sufficient.
func (r *room) status(executed int) int {
	if r.overloaded() {
		return http.StatusServiceUnavailable
	}
	return executed
}

// tooMuchUnread counts a response that does not fit into the output budget, and returns the error for it.
func (e *engine) tooMuchUnread(transport string) error {
	e.leftUnread[slices.Index(transportNames[:], transport)].Add(1)
	err := market.Errorf(market.CodeRateLimited, "too many responses have not been read; read them, then try again")
	err.RetryAfter = retryAfter
	return &httpError{http.StatusServiceUnavailable, err}
}
