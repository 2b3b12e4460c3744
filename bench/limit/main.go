// Command limit is what a GraphQL server on net/http is measured by: a bare handler that decodes a request and writes an
// answer that was made before.
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

// Answer is an element of the file with the answers: the body of a request and the body of its answer.
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

// request is what a server can't do without. Variables are left as they are.
type request struct {
	Query         string          `json:"query"`
	OperationName string          `json:"operationName"`
	Variables     json.RawMessage `json:"variables"`
}

// handler holds answers by query and variables.
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

// ServeHTTP writes the answer that the request has.
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
