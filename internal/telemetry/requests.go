package telemetry

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/request"
)

// RequestIDHeader is the header with the id of a request, in the request and in its response.
const RequestIDHeader = "X-Request-Id"

// Requests returns a handler that gives every request an id and then calls next. The header RequestIDHeader of the response
// contains the id, and so does every log line that is written with the request's context. If the client sends an id of 1 to 64
// letters, digits, '-', '_' or '.', the handler uses this id. Otherwise it uses a random id.
//
// The type Operations logs requests that contain an operation. The handler logs WebSockets and requests without an operation. It
// logs every such request with a status of 500 or more. Of the requests with a lower status, it logs the first in each second, up
// to the parameter limit, and a sample of the rest. While the log's buffer is more than half full, it logs none of the requests
// with a lower status. Requests for a pattern in probes are logged at the level debug only.
//
// Apart from the id and the host of a refused request, a log line contains no input of clients, because the input can be secret. So
// a line contains the pattern of the mux instead of the URL, and OTHER instead of an unknown method.
func Requests(log *slog.Logger, limit int, next http.Handler, probes ...string) http.Handler {
	sampler := sampling{lines: linesOf(log), limit: int64(limit)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(RequestIDHeader)
		if !goodID(id) {
			id = NewRequestID()
		}
		start, seen := time.Now(), &response{ResponseWriter: w, status: http.StatusOK, idHeader: [1]string{id}}
		w.Header()[RequestIDHeader] = seen.idHeader[:]
		ctx := &seen.request
		ctx.Derive(r.Context())
		ctx.ID, ctx.Line = id, &seen.line
		r = r.WithContext(ctx)
		defer func() {
			seen.ResponseWriter = nil // a WebSocket keeps seen in memory after the request, because ctx is a part of seen
			level := slog.LevelInfo
			if slices.Contains(probes, r.Pattern) {
				level = slog.LevelDebug
			}
			if seen.line.Logged.Load() || !log.Enabled(ctx, level) {
				return
			}
			now, weight := time.Now(), 1
			if seen.status < http.StatusInternalServerError {
				if weight = sampler.weight(now); weight == 0 {
					return
				}
			}
			attrs := []any{"method", method(r), "route", r.Pattern, "status", seen.status, "bytes", seen.bytes, "elapsed", now.Sub(start)}
			if weight > 1 {
				attrs = append(attrs, "one_of", weight)
			}
			log.Log(ctx, level, "request", append(attrs, seen.line.Refusal...)...)
		}()
		next.ServeHTTP(seen, r)
	})
}

// NoteRefusal adds the host of a request and the reason of its refusal to the log line of the request. It omits a host that does not
// look like one.
func NoteRefusal(r *http.Request, reason string) {
	line := request.From(r.Context()).Line
	if line == nil {
		return
	}
	host := r.Host
	if len(host) > 255 || strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") != "" {
		host = "(not a host name)"
	}
	line.Refusal = []any{"host", host, "reason", reason}
}

// method returns a request's method, or OTHER if HTTP does not define the method.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return "OTHER"
}

func goodID(id string) bool {
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool { return !allowed(r) })
}

type response struct {
	http.ResponseWriter
	request request.Context
	line    request.Line
	status  int
	bytes   int64
	// idHeader are the values of RequestIDHeader.
	idHeader [1]string
}

func (r *response) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *response) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap returns the underlying writer for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
