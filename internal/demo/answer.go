package demo

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
)

type apiError struct {
	status int
	code   string
	text   string
}

func badRequest(text string) *apiError {
	return &apiError{http.StatusBadRequest, "BAD_REQUEST", text}
}

func notFound(text string) *apiError {
	return &apiError{http.StatusNotFound, "NOT_FOUND", text}
}

var (
	errPath    = notFound("no such endpoint")
	errToken   = notFound("unknown token")
	errMethod  = &apiError{http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "only GET is served here"}
	errKey     = &apiError{http.StatusUnauthorized, "UNAUTHORIZED", "credentials are missing or invalid"}
	errOwner   = &apiError{http.StatusForbidden, "FORBIDDEN", "the address does not belong to these credentials"}
	errLimited = &apiError{http.StatusTooManyRequests, "RATE_LIMITED", "too many requests"}
)

func (e *apiError) append(b []byte) []byte {
	b = appendText(append(b, `{"success":false,"error":`...), e.text)
	b = appendText(append(b, `,"code":`...), e.code)
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // cannot fail for a string
			return append(b, quoted...)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}

// The add functions append a member to an object that already has members.

func addText(b []byte, name, s string) []byte { return appendText(addName(b, name), s) }

func addTextOrNull(b []byte, name, s string) []byte {
	if s == "" {
		return append(addName(b, name), "null"...)
	}
	return addText(b, name, s)
}

func addPrice(b []byte, name string, p Price) []byte {
	return appendFixed(addName(b, name), int64(p), 4)
}

func addSize(b []byte, name string, s Size) []byte {
	return appendFixed(addName(b, name), int64(s), 2)
}

func addMoney(b []byte, name string, m Money) []byte {
	return appendFixed(addName(b, name), int64(m), 6)
}

// addList appends a member that is a list. add appends an element.
func addList[T any](b []byte, name string, list []T, add func([]byte, T) []byte) []byte {
	return appendList(addName(b, name), list, add)
}

func appendList[T any](b []byte, list []T, add func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, element)
	}
	return append(b, ']')
}

func addTime(b []byte, name string, t millis) []byte {
	return appendTime(addName(b, name), t)
}

func addBool(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(addName(b, name), v)
}

func addName(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// appendTime appends an ISO 8601 UTC date-time with milliseconds as a JSON string.
func appendTime(b []byte, t millis) []byte {
	return t.Time().AppendFormat(append(b, '"'), `2006-01-02T15:04:05.000Z"`)
}

func appendHex(b []byte, x uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[x>>shift&15])
	}
	return b
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func newAnswer() *answer {
	return &answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}}
}

func (a *answer) fail(e *apiError) { a.status, a.body = e.status, e.append(nil) }

func (a *answer) send(w http.ResponseWriter) {
	h := w.Header()
	maps.Copy(h, a.header)
	h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may have left
}
