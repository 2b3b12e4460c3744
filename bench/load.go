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

// connection speaks as much HTTP/1.1 as a load client needs, so that the client leaves the processors to the server.
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

// wire returns a POST of a GraphQL request as it is sent. credentials may be empty.
func wire(body []byte, credentials string) []byte {
	b := []byte("POST /graphql HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n" +
		"Accept: application/graphql-response+json, application/json;q=0.9\r\n")
	if credentials != "" {
		b = append(b, "X-Venue-Credentials: "+credentials+"\r\n"...)
	}
	b = append(b, "Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	return append(b, body...)
}

// ask sends a request and returns the body of a 200, which holds until the next.
func (c *connection) ask(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	status, err := c.line()
	if err != nil {
		return nil, err
	}
	if len(status) < 12 {
		return nil, fmt.Errorf("not HTTP: %q", status)
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

// read appends n bytes to the body.
func (c *connection) read(n int) error {
	start := len(c.body)
	c.body = slices.Grow(c.body, n)[:start+n]
	_, err := io.ReadFull(c.in, c.body[start:])
	return err
}

// load is what some clients saw.
type load struct {
	elapsed time.Duration
	// latencies are in ascending order.
	latencies []time.Duration
}

// percentile returns the latency that this share of the requests did not exceed.
func (l *load) percentile(share float64) time.Duration {
	if len(l.latencies) == 0 {
		return 0
	}
	return l.latencies[min(int(share*float64(len(l.latencies))), len(l.latencies)-1)]
}

// run has as many clients as there are connections ask a workload's questions in turn for some time, each its next when
// it has its answer. An answer other than the one that is expected ends it.
func run(ctx context.Context, connections []*connection, requests []request, answers [][]byte, d time.Duration) (*load, error) {
	var (
		wg        sync.WaitGroup
		next      atomic.Int64
		mu        sync.Mutex
		out       load
		firstErr  error
		latencies = make([][]time.Duration, len(connections))
	)
	start := time.Now()
	for i, c := range connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)-1) % len(requests)
				sent := time.Now()
				answer, err := c.ask(requests[n].wire)
				if err == nil && answers != nil && !bytes.Equal(answer, answers[n]) {
					err = fmt.Errorf("wrong answer\n%.300s\nwant\n%.300s", answer, answers[n])
				}
				now := time.Now()
				if err != nil {
					mu.Lock()
					firstErr = errors.Join(firstErr, err)
					mu.Unlock()
					return
				}
				latencies[i] = append(latencies[i], now.Sub(sent))
				if now.Sub(start) >= d {
					return
				}
			}
		})
	}
	wg.Wait()
	out.elapsed = time.Since(start)
	out.latencies = slices.Concat(latencies...)
	slices.Sort(out.latencies)
	return &out, errors.Join(firstErr, ctx.Err())
}

// post sends a GraphQL request with net/http and returns the body of a 200.
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

// fetch sends a request with net/http and returns the body of a 200.
func fetch(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
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
