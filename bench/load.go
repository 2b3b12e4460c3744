package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// connection is a minimal HTTP/1.1 client. It uses little CPU time, so that most of the CPU time remains for the server.
type connection struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

func dial(ctx context.Context, address string) (*connection, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}, nil
}

func (c *connection) close() { _ = c.conn.Close() }

// wire returns the bytes of a POST request. credentials may be empty.
func wire(path string, body []byte, credentials string) []byte {
	b := []byte("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
		"Accept: application/graphql-response+json, application/json;q=0.9\r\n")
	if credentials != "" {
		b = append(b, "X-Venue-Credentials: "+credentials+"\r\n"...)
	}
	b = append(b, "Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	return append(b, body...)
}

// ask sends a request and returns the body of a response with status 200. The body is valid until the next call of ask.
func (c *connection) ask(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	status, err := c.line()
	if err != nil {
		return nil, err
	}
	if len(status) < 12 {
		return nil, fmt.Errorf("the answer is not HTTP: %q", status)
	}
	code := string(status[9:12])
	length, chunked := -1, false
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
	c.body = c.body[:0]
	switch {
	case chunked:
		err = c.chunks()
	case length >= 0:
		err = c.read(length)
	default:
		err = errors.New("the answer has no length")
	}
	if err == nil && code != "200" {
		err = fmt.Errorf("answer with status %s: %.500s", code, c.body)
	}
	return c.body, err
}

func (c *connection) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

func (c *connection) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(line), 16, 32)
		if err != nil {
			return err
		}
		if err := c.read(int(n)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// read appends the next n bytes of the connection to the body.
func (c *connection) read(n int) error {
	start := len(c.body)
	c.body = slices.Grow(c.body, n)[:start+n]
	_, err := io.ReadFull(c.in, c.body[start:])
	return err
}

// load is the duration of a run and the latencies of all its requests.
type load struct {
	elapsed time.Duration
	// latencies are in ascending order.
	latencies []time.Duration
}

// percentile returns the latency that the given share of the requests did not exceed.
func (l *load) percentile(share float64) time.Duration {
	if len(l.latencies) == 0 {
		return 0
	}
	return l.latencies[min(int(share*float64(len(l.latencies))), len(l.latencies)-1)]
}

// patience is the maximum time that a run may continue after its duration, to wait for the last responses.
const patience = 30 * time.Second

// sampleEvery is the minimum time between two responses that are passed to a task's sample function.
const sampleEvery = 20 * time.Millisecond

// task is the work of all clients together.
type task struct {
	requests []request
	// answers are the exact bodies that the server must return, one per request. answers is nil if the bodies change over time.
	answers [][]byte
	// sample checks some of the responses. If it is nil, no responses are checked this way.
	sample func(answer []byte, sent time.Time) error
	// If once is true, the clients send each request once. Otherwise they send the requests in turn, again and again, for the
	// duration.
	once     bool
	duration time.Duration
	// every is the time between the due times of two successive requests of all clients together. If no client is free when a request
	// is due, the request is sent later, and its latency includes the delay. If every is 0, a client sends its next request after each
	// response.
	every time.Duration
	// keep receives the index of the request and the body for each response. It may be nil.
	keep func(n int, answer []byte) error
}

// run does a task with one client per connection. Each client waits for a response before it sends its next request. A client
// stops at a wrong response, and run then returns an error.
func run(ctx context.Context, connections []*connection, t task) (*load, error) {
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		firstErr error
		askers   = make([]asker, len(connections))
		next     atomic.Int64
		start    = time.Now()
	)
	for i, c := range connections {
		if err := c.conn.SetDeadline(start.Add(t.duration + patience)); err != nil {
			return nil, err
		}
		askers[i] = asker{connection: c, task: t, next: &next, start: start, samples: i == 0 && t.sample != nil, latencies: make([]time.Duration, 0, 1<<12)}
	}
	for i := range askers {
		wg.Go(func() {
			if err := askers[i].run(ctx); err != nil {
				mu.Lock()
				firstErr = errors.Join(firstErr, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	out := load{elapsed: time.Since(start)}
	for i := range askers {
		out.latencies = append(out.latencies, askers[i].latencies...)
	}
	slices.Sort(out.latencies)
	return &out, errors.Join(firstErr, ctx.Err())
}

// asker sends requests of a task over one connection. next counts the requests of all askers of a run.
type asker struct {
	*connection
	task
	next      *atomic.Int64
	start     time.Time
	samples   bool // true if this asker passes responses to task.sample
	latencies []time.Duration
}

func (a *asker) run(ctx context.Context) error {
	sampled := a.start
	for ctx.Err() == nil {
		n := int(a.next.Add(1) - 1)
		if a.once && n >= len(a.requests) {
			return nil
		}
		sent := time.Now()
		if a.every > 0 {
			due := a.start.Add(time.Duration(n) * a.every)
			time.Sleep(due.Sub(sent))
			sent = due
		}
		n %= len(a.requests)
		answer, err := a.ask(a.requests[n].wire)
		now := time.Now()
		if err != nil {
			return err
		}
		if a.answers != nil && !bytes.Equal(answer, a.answers[n]) {
			return fmt.Errorf("wrong answer\n%.300s\nwant\n%.300s", answer, a.answers[n])
		}
		a.latencies = append(a.latencies, now.Sub(sent))
		if a.keep != nil {
			if err := a.keep(n, answer); err != nil {
				return err
			}
		}
		if a.samples && now.Sub(sampled) >= sampleEvery {
			sampled = now
			if err := a.sample(answer, sent); err != nil {
				return err
			}
		}
		if !a.once && now.Sub(a.start) >= a.duration {
			return nil
		}
	}
	return nil
}

// post sends JSON with net/http and returns the body of a response with status 200.
func post(ctx context.Context, url string, body []byte, credentials string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if credentials != "" {
		req.Header.Set("X-Venue-Credentials", credentials)
	}
	return fetch(req)
}

// uncompressed is a client that asks for uncompressed responses, as the connections of the load do.
var uncompressed = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// fetch sends a request with net/http and returns the body of a response with status 200.
func fetch(req *http.Request) ([]byte, error) {
	resp, err := uncompressed.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.500s", req.URL.Path, resp.Status, b)
	}
	return b, err
}
