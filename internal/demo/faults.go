package demo

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// FaultKind names a way to spoil a response or a frame.
type FaultKind string

// The kinds of faults.
const (
	// FaultStatus answers Status (500 when 0) with the kind of body that Body names.
	FaultStatus FaultKind = "status"
	// FaultHTML answers 200 with an HTML page.
	FaultHTML FaultKind = "html"
	// FaultEmpty answers 200 with no body.
	FaultEmpty FaultKind = "empty"
	// FaultTruncated answers the first half of the true body.
	FaultTruncated FaultKind = "truncated"
	// FaultWrongTypes answers the true body with a wrong type for every value except lists of objects.
	FaultWrongTypes FaultKind = "wrong-types"
	// FaultMissingFields answers the true body, but its objects have only their identifiers and lists of objects.
	FaultMissingFields FaultKind = "missing-fields"
	// FaultUnknownFields answers the true body with unknown members in every object.
	FaultUnknownFields FaultKind = "unknown-fields"
	// FaultText answers the true body with every number as a string.
	FaultText FaultKind = "text"
	// FaultNested answers the true body inside {"success":true,"data":…}.
	FaultNested FaultKind = "nested"
	// FaultHalfBroken answers the true body with a wrong type for every second row of its outer lists.
	FaultHalfBroken FaultKind = "half-broken"
	// FaultSuccessFalse answers 200 with success false and a message.
	FaultSuccessFalse FaultKind = "success-false"
	// FaultErrorOnly answers 200 with an object that has only the member error.
	FaultErrorOnly FaultKind = "error-only"
	// FaultDelay answers correctly, after DelayMs.
	FaultDelay FaultKind = "delay"
	// FaultHang never answers. It waits for the end of the request's context.
	FaultHang FaultKind = "hang"
	// FaultDrip sends the true body byte by byte, with DelayMs (10 when 0) between bytes.
	FaultDrip FaultKind = "drip"
	// FaultHangBody sends half of the true body and then nothing until the end of the request's context.
	FaultHangBody FaultKind = "hang-body"
	// FaultReset sends half of the true body and resets the connection.
	FaultReset FaultKind = "reset"
	// FaultRefused resets the connection before the first byte, because a running venue cannot refuse a connection.
	FaultRefused FaultKind = "refused"
	// FaultLarge sends Bytes of white space (64 MiB when 0, rounded up to whole MiB) and then the true body.
	FaultLarge FaultKind = "large"
	// FaultGzipBomb is FaultLarge, compressed by a factor of a thousand.
	FaultGzipBomb FaultKind = "gzip-bomb"
	// FaultLargeHeader answers correctly, with an additional header whose value has the length Bytes (1 MiB when 0, at most 64 MiB).
	FaultLargeHeader FaultKind = "large-header"
	// FaultRedirect redirects with Status (302 when 0) to Location, by default a host that does not exist.
	FaultRedirect FaultKind = "redirect"
	// FaultUnknownList simulates a venue without some query parameters: ids and tokenIds of market-details, and tokenIds of spreads.
	// It answers 400 to requests with these parameters, and answers other requests correctly. Fault.Count then counts only refused
	// requests.
	FaultUnknownList FaultKind = "unknown-list"
)

var faultKinds = []FaultKind{
	FaultStatus, FaultHTML, FaultEmpty, FaultTruncated, FaultWrongTypes, FaultMissingFields, FaultUnknownFields, FaultText, FaultNested,
	FaultHalfBroken, FaultSuccessFalse, FaultErrorOnly, FaultDelay, FaultHang, FaultDrip, FaultHangBody, FaultReset, FaultRefused, FaultLarge,
	FaultGzipBomb, FaultLargeHeader, FaultRedirect, FaultUnknownList,
}

// Fault is a rule that spoils answers, or frames of the stream. If several rules match, only one of them applies: the first whose
// random draw succeeds (see Probability).
type Fault struct {
	// Path is the path of an endpoint, * for all endpoints, or [StreamPath]. With StreamPath, the kinds FaultStatus, FaultHTML,
	// FaultDelay, FaultHang, FaultReset, FaultRefused and FaultRedirect spoil the opening of a connection.
	Path string    `json:"path"`
	Kind FaultKind `json:"kind"`
	// Count is the number of answers or frames that the rule spoils before it ends; 0 means no end. A frame counts once for each
	// client.
	Count int `json:"count,omitempty"`
	// TokenID limits the rule to requests with the token. FaultWrongTypes and FaultMissingFields spoil only the objects of the answer
	// that have this tokenId. On the stream, TokenID is the id of a topic: a token, a market or an address. The rule then applies only
	// to frames of this topic.
	TokenID string `json:"tokenId,omitempty"`
	// Channel limits the rule to frames of a channel: prices, orderbook, trades, market or user.
	Channel string `json:"channel,omitempty"`
	// Frame limits the rule to frames of a type, such as orderbook_update. Only a rule with a Frame spoils frames without a topic,
	// such as hello or heartbeat.
	Frame string `json:"frame,omitempty"`
	// Probability is the probability that a matching answer or frame is spoiled; 0 means 1. Seed seeds the random numbers.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
	// Code is the close code of FaultClose and FaultRestart, 4003 when 0.
	Code   int `json:"code,omitempty"`
	Status int `json:"status,omitempty"`
	// RetryAfter is the value of the header Retry-After: seconds or an HTTP date. Empty sends no header.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Body of FaultStatus is json (the default), html or empty.
	Body string `json:"body,omitempty"`
	// DelayMs is the delay of the answer or frame, the pause between the bytes of FaultDrip, or the duration of FaultStall.
	DelayMs  int    `json:"delayMs,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Location string `json:"location,omitempty"`
}

// Bounds of a fault.
const (
	maxFaults     = 100
	maxFaultDelay = 10 * time.Minute
	maxFaultBytes = 1 << 32
	largeBody     = 64 << 20
	largeHeader   = 1 << 20
	dripPause     = 10 * time.Millisecond
	elsewhere     = "http://elsewhere.invalid/"
)

func (f *Fault) check() error {
	switch {
	case f.Path != "*" && f.Path != StreamPath && endpointAt(f.Path) < 0:
		return fmt.Errorf("path %q is not an endpoint, %s or *", f.Path, StreamPath)
	case f.Path == StreamPath && !f.spoilsFrames() && !slices.Contains(openingFaults, f.Kind):
		return fmt.Errorf("kind %q is not one of %v and %v", f.Kind, streamFaults, openingFaults)
	case f.Path != StreamPath && !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("kind %q is not one of %v", f.Kind, faultKinds)
	case !f.spoilsFrames() && (f.Channel != "" || f.Frame != ""):
		return errors.New("channel and frame are for the frames of a stream")
	case f.Channel != "" && !slices.Contains(channelNames[:], f.Channel):
		return fmt.Errorf("channel %q is not one of %v", f.Channel, channelNames)
	case f.Frame != "" && !slices.Contains(frameNames[:], f.Frame):
		return fmt.Errorf("frame %q is not one of %v", f.Frame, frameNames)
	case checkCode(f.Code) != nil:
		return checkCode(f.Code)
	case !(f.Probability >= 0 && f.Probability <= 1):
		return errors.New("probability is not from 0 to 1")
	case f.Count < 0:
		return errors.New("count is negative")
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return errors.New("status is not from 200 to 599")
	case f.Kind == FaultRedirect && f.Status != 0 && (f.Status < 300 || f.Status > 399):
		return errors.New("status of a redirect is not from 300 to 399")
	case !slices.Contains([]string{"", "json", "html", "empty"}, f.Body):
		return errors.New("body is not json, html or empty")
	case f.DelayMs < 0 || time.Duration(f.DelayMs)*time.Millisecond > maxFaultDelay:
		return fmt.Errorf("delayMs is not from 0 to %d", maxFaultDelay.Milliseconds())
	case f.Bytes < 0 || f.Bytes > maxFaultBytes:
		return fmt.Errorf("bytes is not from 0 to %d", int64(maxFaultBytes))
	case strings.ContainsFunc(f.RetryAfter, func(c rune) bool { return c < ' ' || c > '~' }):
		return errors.New("retryAfter is no header value")
	case len(f.TokenID) > maxID:
		return errors.New("tokenId is too long")
	}
	if u, err := url.Parse(f.Location); err != nil || f.Location != "" && u.Host == "" {
		return errors.New("location is no absolute URL")
	}
	return nil
}

// ParseFaults reads rules from a JSON document {"faults":[…]}, the body of POST /__control/faults.
func ParseFaults(document io.Reader) ([]Fault, error) {
	var in struct {
		Faults []Fault `json:"faults"`
	}
	if err := readObject(document, &in); err != nil {
		return nil, err
	}
	return in.Faults, checkFaults(in.Faults)
}

func checkFaults(faults []Fault) error {
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

// SetFaults replaces the rules. An empty list clears them. On an error the old rules stay.
func (v *Venue) SetFaults(faults []Fault) error {
	if err := checkFaults(faults); err != nil {
		return err
	}
	v.faults.set(faults)
	v.unfreeze()
	v.config.Log.Info("demo venue faults set", "rules", len(faults))
	return nil
}
