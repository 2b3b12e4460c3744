package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// These are the commands that Config.Observe gets.
const (
	commandConnect = "connect"
	commandTick    = "tick"
	commandAsk     = "ask"
	commandEnd     = "end"
	commandGet     = "get"
	commandClaim   = "claim"
	commandPut     = "put"
	commandFlush   = "flush"
)

// Commands are the commands, and Results the results that Config.Observe gets.
var (
	Commands = []string{commandConnect, commandTick, commandAsk, commandEnd, commandGet, commandClaim, commandPut, commandFlush}
	Results  = []string{ResultOK, ResultTimeout, ResultFailed, ResultCancelled, ResultRefused}
)

// These are the results that Config.Observe gets.
const (
	// ResultOK means that Redis answered. ResultTimeout means that Redis did not answer in time. ResultFailed means that the
	// connection or Redis returned an error.
	ResultOK, ResultTimeout, ResultFailed = "ok", "timeout", "failed"
	// ResultCancelled means that the context of the calling function ended. ResultRefused means that the call was not sent, because
	// the circuit was open, too many calls were running, or the Fleet was closed.
	ResultCancelled, ResultRefused = "cancelled", "refused"
)

// result returns the result of a call that returned err. ctx is the context of the calling function.
func result(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return ResultOK
	case errors.Is(err, errOpen) || errors.Is(err, errBusy) || errors.Is(err, errClosed):
		return ResultRefused
	case ctx.Err() != nil:
		return ResultCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return ResultTimeout
	}
	return ResultFailed
}

func (f *Fleet) observe(command, result string, took time.Duration) {
	if result == ResultRefused {
		took = 0 // the call was not sent
	}
	if f.cfg.Observe != nil {
		f.cfg.Observe(command, result, took)
	}
}

// reason describes an error without addresses, names and passwords.
func reason(err error) string {
	var network *net.OpError
	var timed net.Error
	var certificate *tls.CertificateVerificationError
	if answer, ok := rueidis.IsRedisErr(err); ok {
		code, _, _ := strings.Cut(answer.Error(), " ")
		switch code {
		case "WRONGPASS", "NOAUTH":
			return "Redis refused the user or the password"
		case "NOPERM":
			return "the Redis user lacks a permission"
		case "READONLY":
			return "the Redis server is not a primary"
		case "OOM":
			return "Redis is out of memory"
		case "LOADING":
			return "Redis is starting"
		}
		if strings.Contains(answer.Error(), "can't run this command") { // Redis 7 says this of a command in a script
			return "the Redis user lacks a permission"
		}
		return "Redis returned an error"
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout():
		return "Redis did not answer in time"
	case errors.As(err, &certificate):
		return "the certificate of Redis is not trusted"
	case errors.As(err, &network) && network.Op == "dial":
		return "no connection to Redis"
	}
	return "the connection to Redis failed"
}

type counts struct{ opened, granted, refused, unanswered atomic.Uint64 }

// Stats is the state of a Fleet.
type Stats struct {
	// Connected reports whether the circuit is closed, so that this replica uses Redis. Since is the time when Connected last changed.
	Connected bool
	Since     time.Time
	// LastError is the reason why Redis is not used, without addresses and secrets. It is empty while Connected is true.
	LastError string
	// Opened counts how often the circuit has opened since the start.
	Opened uint64
	// Replicas is the number of replicas that have used Redis in the last 5 seconds, including this replica. It is 0 while Connected
	// is false.
	Replicas int
	// These fields count calls to the venue that this replica has requested with Ask since the start. Granted counts the calls that
	// Redis granted, and Refused counts the calls that Redis did not grant. Unanswered counts the calls for which Redis did not answer
	// the request.
	Granted, Refused, Unanswered uint64
	// Hold is the time when the venue accepts calls without credentials again. The zero time means that the venue has not refused such
	// a call.
	Hold time.Time
}

// Stats returns the present state.
func (f *Fleet) Stats() Stats {
	s := Stats{Opened: f.counts.opened.Load(), Granted: f.counts.granted.Load(), Refused: f.counts.refused.Load(), Unanswered: f.counts.unanswered.Load()}
	s.Connected, s.Since = f.circuit.state()
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Hold = f.hold
	if s.Connected {
		s.Replicas = f.replicas
	} else {
		s.LastError = f.lastError
	}
	return s
}

func (f *Fleet) setLastError(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastError = reason(err)
}

// setHold stores until when the venue refuses public calls. The scope of these calls is empty. setHold ignores other scopes.
func (f *Fleet) setHold(scope string, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if scope == "" && until.After(f.hold) {
		f.hold = until
	}
}
