// Package server has what all dialects of the demo venue share between the network and their formats: calls, streams, limits, counts
// and identifiers. It knows no markets.
package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MaxURL is the maximum length of the path and query of a call, and MaxBody the maximum size of its body.
const (
	MaxURL  = 8 << 10
	MaxBody = 1 << 20
)

// Object is a JSON object.
type Object = map[string]any

// Refusal is an error answer.
type Refusal struct {
	Status int
	Body   any
}

// Call is a request of a client. Keys is the number of identifiers in it, or 1 if it has no list of identifiers.
type Call struct {
	*http.Request
	Query   url.Values
	Keys    int
	refused *Refusal
}

// Get returns a parameter.
func (c *Call) Get(name string) string { return c.Query.Get(name) }

// Refuse makes the answer of the call a refusal, but the first refusal stays. It returns nil.
func (c *Call) Refuse(r *Refusal) any {
	c.refused = cmp.Or(c.refused, r)
	return nil
}

// Refused reports whether the call has a refusal.
func (c *Call) Refused() bool { return c.refused != nil }

// API is a REST API whose answers are JSON. Latency is the least time of each answer.
type API struct {
	http.ServeMux
	Latency time.Duration
	Counts  *Counts
	// Prefix is cut off the patterns of endpoints in the counts.
	Prefix string
	// TooLong is the answer to a call whose URL is too long.
	TooLong *Refusal
}

// Endpoint adds an endpoint. admit returns the time that a call must wait because of a limit. Both functions may refuse the call.
func (a *API) Endpoint(pattern string, admit func(*Call) time.Duration, answer func(*Call) any) {
	name := strings.TrimPrefix(pattern, a.Prefix)
	a.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &Call{Request: r, Query: r.URL.Query(), Keys: 1}
		if wait := admit(c) + a.Latency; wait > 0 && !Pause(r.Context(), wait) {
			return
		}
		if len(r.URL.RequestURI()) > MaxURL {
			c.Refuse(a.TooLong)
		}
		status, body := http.StatusOK, any(nil)
		if !c.Refused() {
			r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
			body = answer(c)
		}
		if c.Refused() {
			status, body = c.refused.Status, c.refused.Body
		}
		a.Counts.Add(Requests, name, 1)
		a.Counts.Add(Keys, name, c.Keys)
		a.Counts.Add(Statuses, strconv.Itoa(status), 1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(Encode(body)) // the client may have left
	})
}

// Number returns an integer parameter from low to high. It returns the fallback if the text is empty, or, with ok false, if it is no
// such integer.
func Number(text string, low, high, fallback int) (n int, ok bool) {
	if text == "" {
		return fallback, true
	}
	if n, err := strconv.Atoi(text); err == nil && n >= low && n <= high {
		return n, true
	}
	return fallback, false
}

// Encode returns the JSON of an answer or a message.
func Encode(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: all values of the dialects have a JSON form
	}
	return b
}

// Cursor returns an opaque cursor for a number. ReadCursor returns the number of a cursor, or 0 for an empty cursor.
func Cursor(n uint64) string {
	return base64.URLEncoding.EncodeToString(strconv.AppendUint([]byte("k"), n, 10))
}

// ReadCursor is the reverse of Cursor. ok is false if the cursor is not valid.
func ReadCursor(cursor string) (n uint64, ok bool) {
	if cursor == "" {
		return 0, true
	}
	text, err := base64.URLEncoding.DecodeString(cursor)
	digits, isCursor := strings.CutPrefix(string(text), "k")
	n, parseErr := strconv.ParseUint(digits, 10, 63) // fits an int
	return n, isCursor && err == nil && parseErr == nil
}

// Pause waits for d. It returns false if the context ends before d has passed.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// IDs translates identifiers between the engine and a dialect. It never changes after the venue is made.
type IDs struct{ toDialect, toEngine map[string]string }

// Add adds a pair of identifiers. If a side is known, its first partner stays.
func (x *IDs) Add(engine, dialect string) {
	if x.toDialect == nil {
		x.toDialect, x.toEngine = make(map[string]string), make(map[string]string)
	}
	if _, ok := x.toDialect[engine]; !ok {
		x.toDialect[engine] = dialect
	}
	if _, ok := x.toEngine[dialect]; !ok {
		x.toEngine[dialect] = engine
	}
}

// ID returns the dialect's identifier for one of the engine, or "" if there is none.
func (x *IDs) ID(engine string) string { return x.toDialect[engine] }

// DemoID returns the engine's identifier for one of the dialect, or the given one if there is none.
func (x *IDs) DemoID(dialect string) string {
	if id, ok := x.toEngine[dialect]; ok {
		return id
	}
	return dialect
}
