// Command limit is the reference against which GraphQL servers on net/http are measured. Its bare handler decodes a request and
// writes a response body that it has read from a file.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"

	_ "oddsgraph/bench/probe"
)

// Answer is an element of the file with the answers. It holds the body of a request and the body of its response.
type Answer struct {
	Request []byte `json:"request"`
	Answer  []byte `json:"answer"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8082", "host:port to serve on")
	file := flag.String("answers", "", "JSON `file` with the answers")
	flag.Parse()
	h, err := load(*file)
	if err == nil {
		err = http.ListenAndServe(*listen, h)
	}
	fmt.Fprintln(os.Stderr, "limit:", err)
	os.Exit(1)
}

// request has the members of a GraphQL request that every server must decode. The variables remain raw JSON.
type request struct {
	Query         string          `json:"query"`
	OperationName string          `json:"operationName"`
	Variables     json.RawMessage `json:"variables"`
}

// handler maps a query and its variables to the response.
type handler map[string]map[string]response

type response struct {
	body   []byte
	length []string
}

func load(file string) (handler, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var answers []Answer
	if err := json.Unmarshal(b, &answers); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return newHandler(answers)
}

func newHandler(answers []Answer) (handler, error) {
	h := handler{}
	for _, a := range answers {
		var r request
		if err := json.Unmarshal(a.Request, &r); err != nil {
			return nil, fmt.Errorf("request %s: %w", a.Request, err)
		}
		if h[r.Query] == nil {
			h[r.Query] = map[string]response{}
		}
		h[r.Query][string(r.Variables)] = response{a.Answer, []string{strconv.Itoa(len(a.Answer))}}
	}
	return h, nil
}

var (
	buffers     = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	contentType = []string{"application/json"}
)

// ServeHTTP writes the stored response for the request.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	var req request
	if _, err := buf.ReadFrom(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(buf.Bytes(), &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, ok := h[req.Query][string(req.Variables)]
	if !ok {
		http.Error(w, "this request has no answer", http.StatusNotFound)
		return
	}
	header := w.Header()
	header["Content-Type"] = contentType
	header["Content-Length"] = a.length
	_, _ = w.Write(a.body)
}
