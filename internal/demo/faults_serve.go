package demo

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// needsAnswer reports whether the fault spoils or delays the true answer instead of replacing it.
func (f *Fault) needsAnswer() bool {
	switch f.Kind {
	case FaultTruncated, FaultWrongTypes, FaultMissingFields, FaultUnknownFields, FaultText, FaultNested, FaultHalfBroken, FaultDelay,
		FaultDrip, FaultHangBody, FaultReset, FaultLarge, FaultGzipBomb, FaultLargeHeader:
		return true
	}
	return false
}

// serveFault sends the spoiled answer after the latency and the fault's delay. For FaultDrip, the delay is the pause between two
// bytes instead.
func (v *Venue) serveFault(w http.ResponseWriter, r *http.Request, a *answer, f *Fault) {
	wait := v.config.Latency
	if f.Kind != FaultDrip {
		wait += f.delay()
	}
	if !Pause(r.Context(), wait) {
		return
	}
	if f.RetryAfter != "" {
		a.header.Set("Retry-After", f.RetryAfter)
	}
	if a.sendBroken(w, r, f) {
		return
	}
	a.spoil(f)
	a.send(w)
}

func (f *Fault) delay() time.Duration { return time.Duration(f.DelayMs) * time.Millisecond }

// spoil changes the status, the header or the body of the answer if the kind of fault requires it.
func (a *answer) spoil(f *Fault) {
	switch f.Kind {
	case FaultStatus:
		a.failWith(cmp.Or(f.Status, http.StatusInternalServerError), f.Body)
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
	case FaultLargeHeader:
		a.header.Set("X-Large", strings.Repeat("x", int(min(cmp.Or(f.Bytes, largeHeader), largeBody))))
	case FaultRedirect:
		a.status = cmp.Or(f.Status, http.StatusFound)
		a.header.Set("Location", cmp.Or(f.Location, elsewhere))
		a.body = a.body[:0]
	case FaultUnknownList:
		a.fail(badRequest("unknown parameter"))
	}
}

// failWith makes the answer an error with the status and a body of the kind json, html or empty.
func (a *answer) failWith(status int, body string) {
	e := errorFor(status)
	a.fail(e)
	switch body {
	case "html":
		a.page(e.status)
	case "empty":
		a.body = a.body[:0]
	}
}

// sendBroken handles the faults that break the transfer of the answer. It reports whether f is such a fault.
func (a *answer) sendBroken(w http.ResponseWriter, r *http.Request, f *Fault) bool {
	switch f.Kind {
	case FaultHang:
		<-r.Context().Done()
	case FaultDrip:
		a.drip(w, r, cmp.Or(f.delay(), dripPause))
	case FaultHangBody:
		if a.sendHalf(w) == nil {
			<-r.Context().Done()
		}
	case FaultReset:
		_ = a.sendHalf(w)
		disconnect(w)
	case FaultRefused:
		disconnect(w)
	case FaultLarge, FaultGzipBomb:
		a.pad(w, r, cmp.Or(f.Bytes, largeBody), f.Kind == FaultGzipBomb)
	default:
		return false
	}
	return true
}

// page makes the answer an HTML page, like a page of a proxy in front of a venue.
func (a *answer) page(status int) {
	a.status = status
	a.header["Content-Type"] = []string{"text/html; charset=utf-8"}
	a.body = fmt.Appendf(a.body[:0], "<!doctype html><html><head><title>%d</title></head><body><h1>%d %s</h1></body></html>\n",
		status, status, http.StatusText(status))
}

// drip sends the body byte by byte, with a pause after each byte.
func (a *answer) drip(w http.ResponseWriter, r *http.Request, pause time.Duration) {
	a.writeHead(w, len(a.body))
	flusher := http.NewResponseController(w)
	for i := range a.body {
		if _, err := w.Write(a.body[i : i+1]); err != nil || flusher.Flush() != nil || !Pause(r.Context(), pause) {
			return
		}
	}
}

func (a *answer) sendHalf(w http.ResponseWriter) error {
	a.writeHead(w, len(a.body))
	_, _ = w.Write(a.body[:len(a.body)/2])
	return http.NewResponseController(w).Flush()
}

func disconnect(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close then sends RST
		}
		_ = conn.Close()
		return
	}
	panic(http.ErrAbortHandler) // HTTP/2 has no connection to hijack; the server aborts the answer
}

// whiteSpace returns one MiB of spaces as plain bytes and as a gzip member. JSON decoders skip the spaces.
var whiteSpace = sync.OnceValues(func() (plain, zipped []byte) {
	plain = bytes.Repeat([]byte(" "), 1<<20)
	return plain, gzipped(plain)
})

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a bytes.Buffer returns no errors
	_ = z.Close()
	return out.Bytes()
}

// pad sends size bytes of white space, rounded up to mebibytes, and then the body. If zip is true, it compresses both.
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

// writeHead sends the status and the header. A length of -1 sends no Content-Length.
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
