package stream

import (
	"errors"
	"fmt"
	"time"

	"oddsgraph/internal/market"
)

var (
	// ErrFull is returned by Watch when the pool, or the number of identities, is exhausted. It is a RATE_LIMITED error.
	ErrFull error = market.Errorf(market.CodeRateLimited, "the stream has no room for another topic")
	// ErrStopped is returned by Watch after Run has ended.
	ErrStopped error = market.Errorf(market.CodeUpstreamUnavailable, "the stream is closed")
)

// CloseError tells that the venue closed a connection with a code. Dialers of other libraries return it from Read.
type CloseError struct{ Code int }

// Error names the code; the venue's text is left out, since it may quote what it was sent.
func (e *CloseError) Error() string {
	return fmt.Sprintf("the venue closed the connection with code %d", e.Code)
}

// HandshakeError tells that the venue answered the opening of a connection with another status than 101.
type HandshakeError struct {
	Status int
	// RetryAfter is what the venue asks to wait; 0 when it does not say.
	RetryAfter time.Duration
}

// Error names the status.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("the venue answered with status %d", e.Status)
}

// The close codes that have rules of their own.
const (
	closeCredentials = 4001
	closeSlow        = 4002
	closeRestart     = 4003
	closeLimited     = 4008
)

// lost is why a connection is over, with one of the reasons that Observer.Reconnect lists.
type lost struct {
	reason string
	err    error
}

func (e *lost) Error() string { return e.err.Error() }
func (e *lost) Unwrap() error { return e.err }

var (
	errSilence = &lost{"silence", errors.New("nothing was heard for 2.5 heartbeats")}
	errPong    = &lost{"pong", errors.New("a ping was not answered")}
	errWrite   = &lost{"write", errors.New("a frame could not be written in time")}
	errGarbage = &lost{"garbage", errors.New("ten frames in a row were not JSON")}
	errAsked   = &lost{"asked", errors.New("resyncs have failed")}
	// errRetired ends a connection that nobody needs.
	errRetired = errors.New("the connection is not needed")
	// errLimited ends a connection whose authentication the venue puts off.
	errLimited = &lost{"limited", errors.New("the venue put off the authentication")}
)

// reasonOf returns the reason for Observer.Reconnect.
func reasonOf(err error) string {
	var l *lost
	if errors.As(err, &l) {
		return l.reason
	}
	switch codeOf(err) {
	case closeCredentials:
		return "credentials"
	case closeSlow:
		return "slow"
	case closeRestart:
		return "restart"
	case closeLimited:
		return "limited"
	}
	return "closed"
}

// codeOf returns the close code that the venue gave, or 0.
func codeOf(err error) int {
	var c *CloseError
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// The errors that are handed to Handler.Refused.
var (
	errUnknownTopic    = market.Errorf(market.CodeNotFound, "the venue's stream does not know the topic")
	errUnauthenticated = market.Errorf(market.CodeUnauthenticated, "the venue's stream refused the credentials")
	errForbidden       = market.Errorf(market.CodeForbidden, "the address does not belong to the credentials")
	errUnsupported     = market.Errorf(market.CodeUnsupported, "the venue's stream refused the topic")
	errNoRoom          = market.Errorf(market.CodeRateLimited, "the venue's stream takes no more topics")
)
