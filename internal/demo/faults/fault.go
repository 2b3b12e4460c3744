package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Kind names a way to spoil an answer or a frame.
type Kind string

// The kinds of faults of calls, of the opening of streams, and of frames. docs/ui-testing.md has a table of them.
const (
	Status   Kind = "status"   // answers Status (500 when 0) with the body Body
	Delay    Kind = "delay"    // answers after DelayMs, or never when DelayMs is 0; later frames overtake a delayed frame
	Reset    Kind = "reset"    // sends half of the body and resets the connection
	Refuse   Kind = "refuse"   // resets the connection before the answer, because a proxy cannot refuse a connection
	Truncate Kind = "truncate" // sends the first half of the body or of the frame
	JSON     Kind = "json"     // gives each value a wrong type, but with Contains only in objects that have such a text as a value
	Stale    Kind = "stale"    // repeats a correct answer, with its Age, until it is DelayMs old
	Drip     Kind = "drip"     // sends the body byte by byte, with DelayMs (10 when 0) between bytes

	Drop      Kind = "drop"      // loses the frame
	Duplicate Kind = "duplicate" // sends the frame twice
	Reorder   Kind = "reorder"   // sends the frame after the next Behind frames (1 when 0)
	Freeze    Kind = "freeze"    // loses the frame and all later ones that match on its stream, for DelayMs, or for ever when 0
	Close     Kind = "close"     // closes the stream with Code (1012 when 0) instead of sending the frame
)

// What a fault spoils.
const (
	OnCalls  = "calls"
	OnOpens  = "opens"
	OnFrames = "frames"
)

var targets = []string{OnCalls, OnOpens, OnFrames}

var kinds = [][]Kind{
	{Status, Delay, Reset, Refuse, Truncate, JSON, Stale, Drip},
	{Status, Delay, Reset, Refuse},
	{Drop, Delay, Duplicate, Reorder, Truncate, JSON, Freeze, Close},
}

// Fault is a rule that spoils answers, or frames of a stream. If several rules match, only the first whose random draw succeeds
// applies.
type Fault struct {
	On   string `json:"on,omitempty"` // one of targets; empty means calls
	Kind Kind   `json:"kind"`
	// Path limits the rule to calls or streams with this path. Contains limits it to calls and openings whose path and query contain
	// all these texts, or to frames that do.
	Path     string   `json:"path,omitempty"`
	Contains []string `json:"contains,omitempty"`
	// Count is the number of answers or frames that the rule spoils before it ends; 0 means no end.
	Count int `json:"count,omitempty"`
	// Probability is the probability that a matching answer or frame is spoiled; 0 means 1. Seed seeds the random numbers.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	Status     int    `json:"status,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"` // header of Status: seconds or an HTTP date
	Body       string `json:"body,omitempty"`
	DelayMs    int    `json:"delayMs,omitempty"`
	Behind     int    `json:"behind,omitempty"`
	Code       int    `json:"code,omitempty"`

	// Answer answers a call or an opening in place of Kind. a is the venue's answer, which is empty at an opening.
	Answer func(w http.ResponseWriter, r *http.Request, a *Answer) `json:"-"`
	// Frames returns the frames that the proxy sends instead of a frame, in place of Kind.
	Frames func(frame []byte) [][]byte `json:"-"`
}

const (
	maxFaults = 100
	maxDelay  = 10 * time.Minute
	maxBehind = 100
)

func (f *Fault) target() int { return max(slices.Index(targets, f.On), 0) }

func (f *Fault) delay() time.Duration { return time.Duration(f.DelayMs) * time.Millisecond }

func (f *Fault) covers(contains func(text string) bool) bool {
	return !slices.ContainsFunc(f.Contains, func(text string) bool { return !contains(text) })
}

func (f *Fault) check() error {
	switch {
	case f.On != "" && !slices.Contains(targets, f.On):
		return fmt.Errorf("on %q is not one of %v", f.On, targets)
	case f.Answer == nil && f.Frames == nil && !slices.Contains(kinds[f.target()], f.Kind):
		return fmt.Errorf("kind %q is not one of %v", f.Kind, kinds[f.target()])
	case !(f.Probability >= 0 && f.Probability <= 1):
		return errors.New("probability is not from 0 to 1")
	case f.Count < 0 || f.Behind < 0 || f.Behind > maxBehind:
		return fmt.Errorf("count is negative, or behind is not from 0 to %d", maxBehind)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return errors.New("status is not from 200 to 599")
	case f.DelayMs < 0 || f.delay() > maxDelay:
		return fmt.Errorf("delayMs is not from 0 to %d", maxDelay.Milliseconds())
	case strings.ContainsFunc(f.RetryAfter, func(c rune) bool { return c < ' ' || c > '~' }):
		return errors.New("retryAfter is no header value")
	}
	return CheckCode(f.Code)
}

// CheckCode returns an error if a stream can't be closed with the code. It also accepts 0, which means no code.
func CheckCode(code int) error {
	if code == 0 || code >= 3000 && code <= 4999 || code >= 1000 && code <= 1014 && (code < 1004 || code > 1006) {
		return nil
	}
	return errors.New("code is not a valid WebSocket close code")
}
