package stream

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"oddsgraph/internal/market"
)

var (
	// ErrFull is the error of Watch if the limits of topics and connections allow no further topic.
	ErrFull error = market.Errorf(market.CodeRateLimited, "the stream has no room for another topic")
	// ErrStopped is the error of Watch after Run has ended.
	ErrStopped error = market.Errorf(market.CodeUpstreamUnavailable, "the stream is closed")
)

// CloseError reports that the venue has closed a connection with a code.
type CloseError struct{ Code int }

// Error returns a text with the code but without the venue's text, which may quote secrets.
func (e *CloseError) Error() string {
	return fmt.Sprintf("the venue closed the connection with code %d", e.Code)
}

// HandshakeError reports that the response to the WebSocket handshake has a status other than 101.
type HandshakeError struct {
	Status int
	// RetryAfter is the wait that the venue has requested, or 0 if it has requested none.
	RetryAfter time.Duration
}

// Error returns a text with the status.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("the venue answered with status %d", e.Status)
}

// Close codes that have a meaning of their own in every protocol.
const (
	closeCredentials = 4001
	closeSlow        = 4002
	closeRestart     = 4003
	closeLimited     = 4008
)

var closeReasons = map[int]string{closeCredentials: "credentials", closeSlow: "slow", closeRestart: "restart", closeLimited: "limited"}

// disconnectError is the cause of a lost connection. reason is the argument of Observer.Reconnect.
type disconnectError struct {
	reason string
	err    error
}

func (e *disconnectError) Error() string { return e.err.Error() }
func (e *disconnectError) Unwrap() error { return e.err }

var (
	errSilence = &disconnectError{"silence", errors.New("no frame arrived for too long")}
	errPong    = &disconnectError{"pong", errors.New("a ping was not answered")}
	errWrite   = &disconnectError{"write", errors.New("a frame could not be written in time")}
	errGarbage = &disconnectError{"garbage", errors.New("ten frames in a row were not JSON")}
	// errRetired ends a connection that the client has removed from the pool because the connection has no topics.
	errRetired = errors.New("the connection is not needed")
	// errLimited ends a connection if the venue tells the client to authenticate later.
	errLimited = &disconnectError{"limited", errors.New("the venue postponed the authentication")}
	// errPostponed is the cause in Handler.Down of topics that the client subscribes again later.
	errPostponed = errors.New("the venue postponed the subscription")
)

func reasonOf(err error) string {
	var l *disconnectError
	if errors.As(err, &l) {
		return l.reason
	}
	return cmp.Or(closeReasons[codeOf(err)], "closed")
}

func codeOf(err error) int {
	var c *CloseError
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// Errors for Handler.Refused, besides errLater: a later request may succeed.
var (
	errLater           = market.Errorf(market.CodeUpstreamUnavailable, "the venue's stream cannot serve the request now")
	errUnknownTopic    = market.Errorf(market.CodeNotFound, "the venue's stream does not know the topic")
	errUnauthenticated = market.Errorf(market.CodeUnauthenticated, "the venue's stream refused the credentials")
	errForbidden       = market.Errorf(market.CodeForbidden, "the address does not belong to the credentials")
	errUnsupported     = market.Errorf(market.CodeUnsupported, "the venue's stream refused the topic")
	errNoRoom          = market.Errorf(market.CodeRateLimited, "the venue's stream takes no more topics")
)
