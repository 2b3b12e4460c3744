package httpapi

import (
	"bytes"
	"slices"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

var transportNames = [...]string{transportHTTP, transportWebSocket, transportEvents}

// reservation takes the memory for one response from engine.outgoing, which bounds the output that clients have not read. The
// reservation ends when the response was sent. The first quota.FreeBytes of a response need no reservation. reservation implements
// exec.SizeLimiter. It is not safe for concurrent use.
type reservation struct {
	engine    *engine // nil means that nothing is reserved
	transport string
	client    quota.Client
	// limit is the maximum size of the response in bytes. held is the number of reserved bytes.
	limit, held int
	// err is the error of the last refusal. If too little memory was left, err is an httpError. If the response exceeds its limit,
	// err is a market.Error.
	err error
}

func (e *engine) newReservation(client quota.Client, transport string) reservation {
	return reservation{engine: e, transport: transport, client: client, limit: e.cfg.MaxResponse}
}

func (r *reservation) Grow(size int) (limit int, err error) {
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
func (r *reservation) tooLarge() error {
	r.err = market.Errorf(market.CodeResponseTooLarge,
		"the response has more than %d bytes; request fewer items, fields or aliases at once", r.limit)
	return r.err
}

// hold is like take, but sets err if it returns false.
func (r *reservation) hold(size int) bool {
	if !r.take(size) {
		r.err = r.engine.tooMuchUnread(r.transport)
		return false
	}
	return true
}

// take reserves memory for a response of size bytes. It returns false if too little memory is left.
func (r *reservation) take(size int) bool {
	if more := size - quota.FreeBytes - r.held; r.engine != nil && more > 0 {
		if !r.engine.outgoing.Take(r.client, more) {
			return false
		}
		r.held += more
	}
	return true
}

// fit sets the reservation to the capacity of buf, which contains the complete response. If too little memory is left for this
// capacity, fit returns a copy of buf without spare capacity.
func (r *reservation) fit(buf *bytes.Buffer) *bytes.Buffer {
	if !r.take(buf.Cap()) {
		small := bytes.NewBuffer(bytes.Clone(buf.Bytes()))
		putBuffer(buf)
		buf = small
	}
	r.settle(buf.Cap())
	return buf
}

// settle reduces the reservation to what a response of size bytes needs. settle(0) ends the reservation.
func (r *reservation) settle(size int) {
	if less := r.held - max(size-quota.FreeBytes, 0); less > 0 {
		r.engine.outgoing.Give(r.client, less)
		r.held -= less
	}
}

// tooMuchUnread counts and returns the error of a response for which too little memory is left.
func (e *engine) tooMuchUnread(transport string) error {
	e.leftUnread[slices.Index(transportNames[:], transport)].Add(1)
	return unavailable("too many responses have not been read; read them, then try again")
}
