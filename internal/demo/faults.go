package demo

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// FaultKind says how an answer goes wrong.
type FaultKind string

// The kinds of faults.
const (
	// FaultStatus answers Status (500 when 0) with the venue's error body, or the Body that the fault names.
	FaultStatus FaultKind = "status"
	// FaultHTML answers 200 with an HTML page.
	FaultHTML FaultKind = "html"
	// FaultEmpty answers 200 with no body.
	FaultEmpty FaultKind = "empty"
	// FaultTruncated answers the first half of the true body.
	FaultTruncated FaultKind = "truncated"
	// FaultWrongTypes answers the true body with every value of another type; the outer lists stay.
	FaultWrongTypes FaultKind = "wrong-types"
	// FaultMissingFields answers the true body without any value but identifiers; the outer lists stay.
	FaultMissingFields FaultKind = "missing-fields"
	// FaultUnknownFields answers the true body with members in every object that nobody has heard of.
	FaultUnknownFields FaultKind = "unknown-fields"
	// FaultText answers the true body with every number as text.
	FaultText FaultKind = "text"
	// FaultNested answers the true body inside {"success":true,"data":…}.
	FaultNested FaultKind = "nested"
	// FaultHalfBroken answers the true body with every second row of its lists of another type.
	FaultHalfBroken FaultKind = "half-broken"
	// FaultSuccessFalse answers 200 with success false and a message.
	FaultSuccessFalse FaultKind = "success-false"
	// FaultErrorOnly answers 200 with nothing but a message under error.
	FaultErrorOnly FaultKind = "error-only"
	// FaultDelay answers truly, after DelayMs.
	FaultDelay FaultKind = "delay"
	// FaultHang never answers: it waits for the end of the request's context.
	FaultHang FaultKind = "hang"
	// FaultDrip sends the true body byte by byte, DelayMs (10 when 0) apart.
	FaultDrip FaultKind = "drip"
	// FaultHangBody sends half of the true body and then nothing until the end of the request's context.
	FaultHangBody FaultKind = "hang-body"
	// FaultReset sends half of the true body and resets the connection.
	FaultReset FaultKind = "reset"
	// FaultRefused resets the connection before the first byte, the nearest to a refused one that a venue can come which is
	// up.
	FaultRefused FaultKind = "refused"
	// FaultLarge sends the true body after so many Bytes (64 MiB when 0) of white space.
	FaultLarge FaultKind = "large"
	// FaultGzipBomb is FaultLarge compressed a thousand times.
	FaultGzipBomb FaultKind = "gzip-bomb"
	// FaultLargeHeader answers truly after a header of so many Bytes (1 MiB when 0).
	FaultLargeHeader FaultKind = "large-header"
	// FaultRedirect answers Status (302 when 0) to Location, by default a host that does not exist.
	FaultRedirect FaultKind = "redirect"
	// FaultUnknownList answers as a venue that does not know ids and tokenIds on market-details and tokenIds on spreads:
	// 400 for those, the truth for all others. It counts only those.
	FaultUnknownList FaultKind = "unknown-list"
)

var faultKinds = []FaultKind{
	FaultStatus, FaultHTML, FaultEmpty, FaultTruncated, FaultWrongTypes, FaultMissingFields, FaultUnknownFields, FaultText, FaultNested,
	FaultHalfBroken, FaultSuccessFalse, FaultErrorOnly, FaultDelay, FaultHang, FaultDrip, FaultHangBody, FaultReset, FaultRefused, FaultLarge,
	FaultGzipBomb, FaultLargeHeader, FaultRedirect, FaultUnknownList,
}

// Fault is a rule that spoils answers, or frames of the stream. The first rule that fits a request or a frame is the one that
// counts.
type Fault struct {
	// Path is an endpoint's, * for all of them, or [StreamPath], where the kinds of streams belong. There FaultStatus,
	// FaultHTML, FaultDelay, FaultHang, FaultReset, FaultRefused and FaultRedirect spoil the opening of a connection.
	Path string    `json:"path"`
	Kind FaultKind `json:"kind"`
	// Count is after how many answers or frames the rule ends; 0 is never. A frame counts once for each client.
	Count int `json:"count,omitempty"`
	// TokenID limits the rule to requests that ask for the token, and FaultWrongTypes and FaultMissingFields to the
	// elements of the answer that carry it. On the stream it limits the rule to frames of one topic: a token, a market or
	// an address.
	TokenID string `json:"tokenId,omitempty"`
	// Channel limits the rule to frames of a channel: prices, orderbook, trades, market or user.
	Channel string `json:"channel,omitempty"`
	// Frame limits the rule to frames of a type, such as orderbook_update. Frames that belong to no topic, such as hello or
	// heartbeat, are spoiled only by rules that name them.
	Frame string `json:"frame,omitempty"`
	// Probability is that of each answer or frame that fits to be spoiled, drawn from Seed; 0 is 1.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
	// Code is the one that FaultClose (4003 when 0) and FaultRestart (4003 when 0) close with.
	Code   int `json:"code,omitempty"`
	Status int `json:"status,omitempty"`
	// RetryAfter is sent as the header of that name: seconds or an HTTP date. Empty sends none.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Body of FaultStatus is json (the default), html or empty.
	Body string `json:"body,omitempty"`
	// DelayMs passes before the answer, or between the bytes of a drip.
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

// check reports what is wrong with a rule.
func (f *Fault) check() error {
	switch {
	case f.Path != "*" && f.Path != StreamPath && endpointAt(f.Path) < 0:
		return fmt.Errorf("path %q is no endpoint, not %s and not *", f.Path, StreamPath)
	case f.Path == StreamPath && !f.streams() && !slices.Contains(openingFaults, f.Kind):
		return fmt.Errorf("kind %q is not one of %v and %v", f.Kind, streamFaults, openingFaults)
	case f.Path != StreamPath && !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("kind %q is not one of %v", f.Kind, faultKinds)
	case !f.streams() && (f.Channel != "" || f.Frame != ""):
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

// ParseFaults reads rules from a JSON document {"faults":[…]}, as POST /__control/faults takes it.
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

// SetFaults replaces the rules; an empty list clears them. On an error nothing has changed.
func (v *Venue) SetFaults(faults []Fault) error {
	if err := checkFaults(faults); err != nil {
		return err
	}
	v.faults.set(faults)
	v.unfreeze()
	v.config.Log.Info("demo venue faults set", "rules", len(faults))
	return nil
}

// faultList holds the rules that are in force.
type faultList struct {
	any, streaming atomic.Bool // spare the lock while there are none of answers, and of frames

	mu    sync.Mutex
	rules []rule
}

// rule is a fault in force.
type rule struct {
	Fault
	chance rng
}

func (l *faultList) set(faults []Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = make([]rule, len(faults))
	for i, f := range faults {
		l.rules[i] = rule{f, rng(hash(f.Seed, 8))}
	}
	l.count()
}

// count tells whether there are rules.
func (l *faultList) count() {
	streaming := 0
	for i := range l.rules {
		if l.rules[i].streams() {
			streaming++
		}
	}
	l.streaming.Store(streaming > 0)
	l.any.Store(streaming < len(l.rules))
}

// take returns the rule that spoils the answer to a request, or nil, and counts it.
func (l *faultList) take(path string, c *call) *Fault {
	if !l.any.Load() {
		return nil
	}
	return l.first(func(f *Fault) bool {
		return !f.streams() && (f.Path == "*" && path != StreamPath || f.Path == path) && (f.TokenID == "" || c.mentions(f.TokenID)) &&
			(f.Kind != FaultUnknownList || c.usesOurLists(path))
	})
}

// first returns the first rule that fits, unless chance will have it that it does nothing, and counts it.
func (l *faultList) first(fits func(*Fault) bool) *Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.rules {
		r := &l.rules[i]
		f := r.Fault
		if !fits(&f) || f.Probability > 0 && float64(r.chance.next()>>11)/(1<<53) >= f.Probability {
			continue
		}
		if f.Count == 1 {
			l.rules = slices.Delete(l.rules, i, i+1)
			l.count()
		} else if f.Count > 1 {
			r.Count--
		}
		return &f
	}
	return nil
}

// usesOurLists reports whether the request carries a list parameter that not every venue knows.
func (c *call) usesOurLists(path string) bool {
	switch path {
	case "/api/exchange/market-details":
		return c.has("ids") || c.has("tokenIds")
	case "/api/exchange/spreads":
		return c.has("tokenIds")
	}
	return false
}

// needsAnswer reports whether the fault spoils the true answer rather than replacing it.
func (f *Fault) needsAnswer() bool {
	switch f.Kind {
	case FaultTruncated, FaultWrongTypes, FaultMissingFields, FaultUnknownFields, FaultText, FaultNested, FaultHalfBroken, FaultDelay,
		FaultDrip, FaultHangBody, FaultReset, FaultLarge, FaultGzipBomb, FaultLargeHeader:
		return true
	}
	return false
}

// serveFault sends the spoiled answer after the latency and the fault's delay.
func (v *Venue) serveFault(w http.ResponseWriter, r *http.Request, a *answer, f *Fault) {
	delay := time.Duration(f.DelayMs) * time.Millisecond
	wait := v.config.Latency
	if f.Kind != FaultDrip {
		wait += delay
	}
	if !pause(r.Context(), wait) {
		return
	}
	if f.RetryAfter != "" {
		a.header.Set("Retry-After", f.RetryAfter)
	}
	switch f.Kind {
	case FaultStatus:
		e := errorFor(http.StatusInternalServerError)
		if f.Status != 0 {
			e = errorFor(f.Status)
		}
		a.fail(e)
		switch f.Body {
		case "html":
			a.page(e.status)
		case "empty":
			a.body = a.body[:0]
		}
	case FaultHTML:
		a.page(http.StatusOK)
	case FaultEmpty:
		a.body = a.body[:0]
	case FaultTruncated:
		a.body = a.body[:len(a.body)/2]
	case FaultWrongTypes:
		a.rewrite(f.TokenID, wrongType)
	case FaultMissingFields:
		a.rewrite(f.TokenID, withoutFields)
	case FaultUnknownFields, FaultText, FaultNested, FaultHalfBroken:
		a.drift(f.Kind)
	case FaultSuccessFalse:
		a.fail(errDown)
		a.status = http.StatusOK
	case FaultErrorOnly:
		a.body = append(a.body[:0], `{"error":"the venue is not available"}`...)
	case FaultHang:
		<-r.Context().Done()
		return
	case FaultDrip:
		if delay == 0 {
			delay = dripPause
		}
		a.drip(w, r, delay)
		return
	case FaultHangBody:
		a.writeHead(w, len(a.body))
		_, _ = w.Write(a.body[:len(a.body)/2])
		if http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
		return
	case FaultReset:
		a.reset(w)
		return
	case FaultRefused:
		disconnect(w)
		return
	case FaultLarge, FaultGzipBomb:
		size := f.Bytes
		if size == 0 {
			size = largeBody
		}
		a.pad(w, r, size, f.Kind == FaultGzipBomb)
		return
	case FaultLargeHeader:
		size := f.Bytes
		if size == 0 {
			size = largeHeader
		}
		a.header.Set("X-Large", strings.Repeat("x", int(min(size, largeBody))))
	case FaultRedirect:
		a.status = http.StatusFound
		if f.Status != 0 {
			a.status = f.Status
		}
		location := f.Location
		if location == "" {
			location = elsewhere
		}
		a.header.Set("Location", location)
		a.body = a.body[:0]
	case FaultUnknownList:
		a.fail(badRequest("unknown parameter"))
	}
	a.send(w, r, v.config.Gzip)
}

// page makes the answer an HTML page, as a proxy in front of a venue would send it.
func (a *answer) page(status int) {
	a.status = status
	a.header["Content-Type"] = []string{"text/html; charset=utf-8"}
	a.body = fmt.Appendf(a.body[:0], "<!doctype html><html><head><title>%d</title></head><body><h1>%d %s</h1></body></html>\n",
		status, status, http.StatusText(status))
}

// drip sends the body byte by byte.
func (a *answer) drip(w http.ResponseWriter, r *http.Request, every time.Duration) {
	a.writeHead(w, len(a.body))
	flusher := http.NewResponseController(w)
	for i := range a.body {
		if _, err := w.Write(a.body[i : i+1]); err != nil || flusher.Flush() != nil || !pause(r.Context(), every) {
			return
		}
	}
}

// reset sends half of the body and resets the connection.
func (a *answer) reset(w http.ResponseWriter) {
	a.writeHead(w, len(a.body))
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush()
	disconnect(w)
}

// disconnect resets the connection.
func disconnect(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing then sends RST
		}
		_ = conn.Close()
		return
	}
	panic(http.ErrAbortHandler) // without a connection to take over, the server cuts the answer
}

// whiteSpace is a mebibyte that changes nothing in JSON, plain and as a gzip member.
var whiteSpace = sync.OnceValues(func() (plain, zipped []byte) {
	plain = bytes.Repeat([]byte(" "), 1<<20)
	return plain, gzipped(plain)
})

// gzipped compresses b.
func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// pad sends size bytes of white space, in whole mebibytes, and then the body.
func (a *answer) pad(w http.ResponseWriter, r *http.Request, size int64, zip bool) {
	block, zipped := whiteSpace()
	body := a.body
	if zip {
		a.header.Set("Content-Encoding", "gzip")
		block, body = zipped, gzipped(a.body)
	}
	a.writeHead(w, -1)
	for range (size + 1<<20 - 1) >> 20 {
		if _, err := w.Write(block); err != nil || r.Context().Err() != nil {
			return
		}
	}
	_, _ = w.Write(body)
}

// writeHead sends the status and the header; length is -1 when it is not told.
func (a *answer) writeHead(w http.ResponseWriter, length int) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	w.WriteHeader(a.status)
}
