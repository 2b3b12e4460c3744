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

// The kinds of faults. The opening of a stream has no true answer, so there Truncate, JSON and Drip answer nothing.
const (
	// Status answers Status (500 when 0) with the body Body.
	Status Kind = "status"
	// Delay answers after DelayMs, or never when DelayMs is 0. Later frames overtake a delayed frame.
	Delay Kind = "delay"
	// Reset sends half of the body and resets the connection.
	Reset Kind = "reset"
	// Refuse resets the connection before the first byte, because a proxy cannot refuse a connection.
	Refuse Kind = "refuse"
	// Truncate sends the first half of the body or of the frame.
	Truncate Kind = "truncate"
	// JSON gives every value a wrong type, except lists of objects. With Contains, it does so only in objects that have one of these
	// texts as a member.
	JSON Kind = "json"
	// Drip sends the body byte by byte, with DelayMs (10 when 0) between bytes.
	Drip Kind = "drip"

	// Drop drops the frame.
	Drop Kind = "drop"
	// Duplicate sends the frame twice.
	Duplicate Kind = "duplicate"
	// Reorder sends the frame after the next Behind frames (1 when 0).
	Reorder Kind = "reorder"
	// Freeze drops the frame and all later frames of its stream that the rule matches, for DelayMs, or until the stream ends when
	// DelayMs is 0. Pings of WebSocket are still answered.
	Freeze Kind = "freeze"
	// Close closes the stream with Code (1012 when 0) instead of sending the frame.
	Close Kind = "close"
)

// What a fault spoils.
const (
	OnCalls  = "calls"
	OnOpens  = "opens"
	OnFrames = "frames"
)

var targets = []string{OnCalls, OnOpens, OnFrames}

// kinds has the kinds of faults of each of the targets.
var kinds = [][]Kind{
	{Status, Delay, Reset, Refuse, Truncate, JSON, Drip},
	{Status, Delay, Reset, Refuse},
	{Drop, Delay, Duplicate, Reorder, Truncate, JSON, Freeze, Close},
}

// Fault is a rule that spoils answers, or frames of a stream. If several rules match, only the first whose random draw succeeds
// applies.
type Fault struct {
	// On is calls, also when it is empty; opens, for the opening of streams; or frames, for what the venue sends on streams.
	On   string `json:"on,omitempty"`
	Kind Kind   `json:"kind"`
	// Path limits the rule to calls or streams with this path.
	Path string `json:"path,omitempty"`
	// Contains limits the rule to calls and openings whose path and query contain all of these texts, or to frames that do.
	Contains []string `json:"contains,omitempty"`
	// Count is the number of answers or frames that the rule spoils before it ends; 0 means no end.
	Count int `json:"count,omitempty"`
	// Probability is the probability that a matching answer or frame is spoiled; 0 means 1. Seed seeds the random numbers.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	Status int `json:"status,omitempty"`
	// RetryAfter is the header Retry-After of Status: seconds or an HTTP date. Empty sends no header.
	RetryAfter string `json:"retryAfter,omitempty"`
	Body       string `json:"body,omitempty"`
	DelayMs    int    `json:"delayMs,omitempty"`
	Behind     int    `json:"behind,omitempty"`
	Code       int    `json:"code,omitempty"`

	// Answer answers a call or the opening of a stream in place of Kind. The answer a is the venue's; at an opening it is empty.
	Answer func(w http.ResponseWriter, r *http.Request, a *Answer) `json:"-"`
	// Frames returns the frames that the proxy sends instead of a frame, in place of Kind.
	Frames func(frame []byte) [][]byte `json:"-"`
}

// Bounds of the rules.
const (
	maxFaults = 100
	maxDelay  = 10 * time.Minute
	maxBehind = 100
)

func (f *Fault) target() int { return max(slices.Index(targets, f.On), 0) }

// covers reports whether a URL or a frame contains all texts of the rule.
func (f *Fault) covers(contains func(text string) bool) bool {
	return !slices.ContainsFunc(f.Contains, func(text string) bool { return !contains(text) })
}

func (f *Fault) delay() time.Duration { return time.Duration(f.DelayMs) * time.Millisecond }

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

func check(faults []Fault) error {
	if len(faults) > maxFaults {
		return fmt.Errorf("more than %d faults", maxFaults)
	}
	for i := range faults {
		if err := faults[i].check(); err != nil {
			return fmt.Errorf("fault %d: %w", i, err)
		}
	}
	return nil
}
