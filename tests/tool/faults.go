package tool

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"oddsgraph/internal/demo/faults"
)

// Bodies of answers for faults of the kind Status.
const (
	HTML    = "<!doctype html><html><head><title>Error</title></head><body><h1>Error</h1></body></html>\n"
	Failure = `{"success":false,"error":"the venue is not available","code":"UNAVAILABLE"}`
)

// Answerer is a value for [faults.Fault.Answer].
type Answerer = func(w http.ResponseWriter, r *http.Request, a *faults.Answer)

// Empty answers a status without a body.
func Empty(status int) Answerer {
	return func(w http.ResponseWriter, _ *http.Request, a *faults.Answer) {
		a.Status, a.Body = status, nil
		a.Send(w)
	}
}

// HangBody sends half of the body, and then nothing until the request ends.
func HangBody(w http.ResponseWriter, r *http.Request, a *faults.Answer) {
	a.Begin(w)
	_, _ = w.Write(a.Body[:len(a.Body)/2])
	if http.NewResponseController(w).Flush() == nil {
		<-r.Context().Done()
	}
}

// Redirect redirects to another host.
func Redirect(status int, location string) Answerer {
	return func(w http.ResponseWriter, r *http.Request, _ *faults.Answer) { http.Redirect(w, r, location, status) }
}

// LargeHeader answers correctly, with a header whose value has the given length.
func LargeHeader(length int) Answerer {
	return func(w http.ResponseWriter, _ *http.Request, a *faults.Answer) {
		a.Header().Set("X-Large", strings.Repeat("x", length))
		a.Send(w)
	}
}

// blanks returns one MiB of spaces as plain bytes and as a gzip member. JSON decoders skip the spaces.
var blanks = sync.OnceValues(func() (plain, zipped []byte) {
	plain = bytes.Repeat([]byte(" "), 1<<20)
	return plain, zip(plain)
})

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a bytes.Buffer returns no errors
	_ = z.Close()
	return out.Bytes()
}

// Large sends 64 MiB of spaces and then the body.
func Large(w http.ResponseWriter, r *http.Request, a *faults.Answer) {
	plain, _ := blanks()
	pad(w, r, plain, a.Body)
}

// GzipBomb is like Large, compressed by a factor of a thousand.
func GzipBomb(w http.ResponseWriter, r *http.Request, a *faults.Answer) {
	_, zipped := blanks()
	w.Header().Set("Content-Encoding", "gzip")
	pad(w, r, zipped, zip(a.Body))
}

func pad(w http.ResponseWriter, r *http.Request, block, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	for range 64 {
		if _, err := w.Write(block); err != nil || r.Context().Err() != nil {
			return
		}
	}
	_, _ = w.Write(body)
}

// Nested answers the body inside {"success":true,"data":…}.
func Nested(w http.ResponseWriter, _ *http.Request, a *faults.Answer) {
	a.Body = append(append([]byte(`{"success":true,"data":`), a.Body...), '}')
	a.Send(w)
}

// HalfBroken, MissingFields, UnknownFields and Texts change the body: they make every second row of the outer lists unreadable,
// leave the objects only identifiers and lists of objects, add unknown members to each object, and write numbers as strings.
var (
	HalfBroken    = rewrite(breakRows)
	MissingFields = rewrite(withoutFields)
	UnknownFields = rewrite(addUnknownMembers)
	Texts         = rewrite(texts)
)

func rewrite(change func(doc any) any) Answerer {
	return func(w http.ResponseWriter, _ *http.Request, a *faults.Answer) {
		d := json.NewDecoder(bytes.NewReader(a.Body))
		d.UseNumber()
		var doc any
		if err := d.Decode(&doc); err == nil {
			a.Body, _ = json.Marshal(change(doc)) // cannot fail for decoded values
		}
		a.Send(w)
	}
}

func breakRows(doc any) any {
	m, _ := doc.(map[string]any)
	for _, member := range m {
		rows, _ := member.([]any)
		for i := range rows {
			if _, isRow := rows[i].(map[string]any); isRow && i%2 == 1 {
				rows[i] = []any{"unexpected", i}
			}
		}
	}
	return doc
}

func withoutFields(doc any) any {
	switch v := doc.(type) {
	case []any:
		for _, element := range v {
			withoutFields(element)
		}
	case map[string]any:
		for name, member := range v {
			if list, ok := member.([]any); ok && len(list) > 0 {
				if _, ok := list[0].(map[string]any); ok {
					withoutFields(list)
					continue
				}
			}
			if name != "id" && !strings.HasSuffix(name, "Id") {
				delete(v, name)
			}
		}
	}
	return doc
}

func texts(doc any) any {
	switch v := doc.(type) {
	case json.Number:
		return v.String()
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = texts(v[name])
		}
	}
	return doc
}

func addUnknownMembers(doc any) any {
	switch v := doc.(type) {
	case []any:
		for _, element := range v {
			addUnknownMembers(element)
		}
	case map[string]any:
		for _, member := range v {
			addUnknownMembers(member)
		}
		v["unheardOf"] = map[string]any{"deep": []any{1, nil, map[string]any{"price": "?"}}}
		v[""] = false
	}
	return doc
}
