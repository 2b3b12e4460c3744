package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer is a venue's whole answer to a call. It is an [http.ResponseWriter].
type Answer struct {
	Status int
	Body   []byte
	header http.Header
	keptAt time.Time // for the kind Stale
}

func newAnswer() *Answer { return &Answer{Status: http.StatusOK, header: make(http.Header)} }

// Header returns the header of the answer.
func (a *Answer) Header() http.Header { return a.header }

// Write appends to the body.
func (a *Answer) Write(b []byte) (int, error) {
	a.Body = append(a.Body, b...)
	return len(b), nil
}

// WriteHeader sets the status.
func (a *Answer) WriteHeader(status int) { a.Status = status }

// Send sends the answer.
func (a *Answer) Send(w http.ResponseWriter) {
	a.Begin(w)
	_, _ = w.Write(a.Body) // the client may have left
}

// Begin sends everything but the body.
func (a *Answer) Begin(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
}

// maxKept is the number of answers that are kept. When there are more, all are forgotten.
const maxKept = 1000

// keyOf returns what the answer to a call depends on: its URL, its credentials and its body.
func keyOf(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r.URL.RequestURI() + "\x00" + r.Header.Get("X-Api-Credentials") + "\x00" + string(body)
}

// repeat replaces an answer by the one that is kept for the key, if it is younger than maxAge. Or else it keeps the answer.
func (p *Proxy) repeat(key string, a *Answer, maxAge time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	k := p.kept[key]
	if k == nil || now.Sub(k.keptAt) >= maxAge {
		if len(p.kept) >= maxKept {
			clear(p.kept)
		}
		k, a.keptAt, p.kept[key] = a, now, a
	}
	a.Body = k.Body
	// max-age is rounded down and Age up, so that no client caches the answer for too long.
	a.header.Set("Cache-Control", "max-age="+strconv.Itoa(int(maxAge/time.Second)))
	a.header.Set("Age", strconv.Itoa(int((now.Sub(k.keptAt)+time.Second-1)/time.Second)))
}

func (f *Fault) answer(w http.ResponseWriter, r *http.Request, a *Answer) {
	switch {
	case f.Answer != nil:
		f.Answer(w, r, a)
		return
	case f.Kind == Status:
		f.replace(a)
	case f.Kind == Delay && f.DelayMs == 0:
		<-r.Context().Done()
		return
	case f.Kind == Delay:
		if !pause(r.Context(), f.delay()) {
			return
		}
	case f.Kind == Refuse:
		disconnect(w)
		return
	case f.Kind == Reset:
		a.Begin(w)
		_, _ = w.Write(a.Body[:len(a.Body)/2])
		_ = http.NewResponseController(w).Flush()
		disconnect(w)
		return
	case f.Kind == Truncate:
		a.Body = a.Body[:len(a.Body)/2]
	case f.Kind == JSON:
		a.Body = wrongTypes(a.Body, f.Contains)
	case f.Kind == Drip:
		a.drip(w, r, cmp.Or(f.delay(), 10*time.Millisecond))
		return
	}
	a.Send(w)
}

func (f *Fault) replace(a *Answer) {
	a.Status, a.Body = cmp.Or(f.Status, http.StatusInternalServerError), []byte(cmp.Or(f.Body, `{"success":false,"error":"a fault"}`))
	a.header.Set("Content-Type", "application/json")
	if strings.HasPrefix(f.Body, "<") {
		a.header.Set("Content-Type", "text/html; charset=utf-8")
	}
	if f.RetryAfter != "" {
		a.header.Set("Retry-After", f.RetryAfter)
	}
}

func (a *Answer) drip(w http.ResponseWriter, r *http.Request, every time.Duration) {
	a.Begin(w)
	flusher := http.NewResponseController(w)
	for i := range a.Body {
		if _, err := w.Write(a.Body[i : i+1]); err != nil || flusher.Flush() != nil || !pause(r.Context(), every) {
			return
		}
	}
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

// wrongTypes returns a JSON text with wrong types, as the kind JSON describes. It returns other texts unchanged.
func wrongTypes(body []byte, within []string) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) != nil {
		return body
	}
	spoil(doc, len(within) == 0, within)
	body, _ = json.Marshal(doc) // cannot fail for decoded values
	return body
}

// spoil walks a JSON value and changes the types of members in place. inside is true in an object whose members are to be changed.
func spoil(value any, inside bool, within []string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			spoil(element, inside, within)
		}
	case map[string]any:
		for _, member := range value {
			text, ok := member.(string)
			inside = inside || ok && slices.Contains(within, text)
		}
		for name, member := range value {
			if list, ok := member.([]any); ok && len(list) > 0 {
				if _, ok := list[0].(map[string]any); ok {
					spoil(list, inside, within)
					continue
				}
			}
			if inside {
				value[name] = wrongType(member)
			}
		}
	}
}

func wrongType(value any) any {
	switch value.(type) {
	case string, json.Number:
		return map[string]any{"unexpected": []any{value}}
	case []any, map[string]any:
		return true
	}
	return []any{"unexpected"}
}
