package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// limitCommand is the argument with which this program runs as limit, the bare handler that the other servers are compared with.
const limitCommand = "limit"

// serveLimit serves the responses in a file, a JSON object that maps the bodies of requests to those of responses.
func serveLimit(file string) error {
	h, err := loadLimit(file)
	if err != nil {
		return err
	}
	http.Handle("POST /graphql", h)
	http.Handle("GET /metrics", promhttp.Handler())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "limit: url=http://%s admin=http://%[1]s\n", l.Addr())
	return http.Serve(l, nil)
}

// limit maps a query and its variables to the body of a response and its length.
type limit map[[2]string]stored

type stored struct {
	body   []byte
	length []string
}

// graphQLRequest has the members of a request that every server must decode. The variables remain JSON.
type graphQLRequest struct {
	Query, OperationName string
	Variables            json.RawMessage
}

func loadLimit(file string) (limit, error) {
	text, err := os.ReadFile(file)
	var responses map[string][]byte
	if err == nil {
		err = json.Unmarshal(text, &responses)
	}
	h := limit{}
	for request, response := range responses {
		var r graphQLRequest
		if err := json.Unmarshal([]byte(request), &r); err != nil {
			return nil, err
		}
		h[[2]string{r.Query, string(r.Variables)}] = stored{response, []string{strconv.Itoa(len(response))}}
	}
	return h, err
}

var (
	buffers     = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	contentType = []string{"application/json"}
)

func (h limit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	_, err := buf.ReadFrom(r.Body)
	var req graphQLRequest
	if err == nil {
		err = json.Unmarshal(buf.Bytes(), &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	found, ok := h[[2]string{req.Query, string(req.Variables)}]
	if !ok {
		http.Error(w, "this request has no response", http.StatusNotFound)
		return
	}
	w.Header()["Content-Type"], w.Header()["Content-Length"] = contentType, found.length
	_, _ = w.Write(found.body)
}
