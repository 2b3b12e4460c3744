package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// request is a GraphQL request, as its body and as the bytes of the whole HTTP request. want is the expected response with sorted
// members. seen is a response that was equal to it.
type request struct {
	body, wire []byte
	want       []byte
	seen       atomic.Pointer[[]byte]
}

// newRequest returns a request for data. credentials is a JSON object, or empty. The request does not accept compression, because
// limit does not compress.
func newRequest(document string, variables object, credentials string, data object) *request {
	body, err := json.Marshal(object{"query": document, "variables": variables})
	want, err2 := json.Marshal(object{"data": data})
	post, err3 := http.NewRequest(http.MethodPost, "http://localhost/graphql", bytes.NewReader(body))
	if err := errors.Join(err, err2, err3); err != nil {
		panic("bench: " + err.Error()) // impossible: strings, lists and objects always have a JSON form
	}
	post.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/graphql-response+json, application/json;q=0.9"}}
	if credentials != "" {
		post.Header.Set("X-Venue-Credentials", base64.StdEncoding.EncodeToString([]byte(credentials)))
	}
	var wire bytes.Buffer
	_ = post.Write(&wire) // a bytes.Buffer does not fail
	return &request{body: body, wire: wire.Bytes(), want: want}
}

// check returns an error if a response differs from the data of the venue, for example because it has errors.
func (r *request) check(response []byte) error {
	if seen := r.seen.Load(); seen != nil && bytes.Equal(*seen, response) {
		return nil
	}
	var in object
	if err := json.Unmarshal(response, &in); err != nil {
		return fmt.Errorf("%w: %.300s", err, response)
	}
	if errs := in["errors"]; errs != nil {
		return fmt.Errorf("the response has errors: %.2000v", errs)
	}
	if sorted, err := json.Marshal(in); err != nil || !bytes.Equal(sorted, r.want) {
		at := 0
		for at < min(len(sorted), len(r.want)) && sorted[at] == r.want[at] {
			at++
		}
		at = max(0, at-300)
		return fmt.Errorf("the response is\n%.2000s\nand the venue says\n%.2000s", sorted[at:], r.want[at:])
	}
	seen := bytes.Clone(response)
	r.seen.Store(&seen)
	return nil
}

// client is a connection of the load. It sends the next request when it has received a response. With a client of net/http, which uses
// two more goroutines for each connection, the servers on the same processors answered a third fewer requests.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

type clients []client

func dial(p *process, count int) (c clients, err error) {
	for range count {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			c.close()
			return nil, err
		}
		c = append(c, client{conn, bufio.NewReader(conn)})
	}
	return c, nil
}

func (c clients) close() {
	for _, k := range c {
		_ = k.conn.Close()
	}
}

type load struct {
	elapsed   time.Duration
	cpu       time.Duration   // processor time of the server, or 0 if the server did nothing else meanwhile
	latencies []time.Duration // in ascending order
	expected  int             // number of events that should arrive
}

// percentile returns the latency that the given share of the requests did not exceed.
func (l *load) percentile(share float64) float64 {
	return float64(l.latencies[min(int(share*float64(len(l.latencies))), len(l.latencies)-1)])
}

// send has all clients send the requests in turn for the given duration, or each request once if the duration is 0. It checks every
// response. If ctx ends, it closes the connections.
func (c clients) send(ctx context.Context, requests []*request, d time.Duration) (*load, error) {
	var next atomic.Int64
	begun, latencies := time.Now(), make([][]time.Duration, len(c))
	defer context.AfterFunc(ctx, c.close)()
	var g errgroup.Group
	for i := range c {
		_ = c[i].conn.SetDeadline(begun.Add(d + patience + time.Duration(len(requests))*slowest)) // a connection of net has deadlines
		g.Go(func() error {
			var response bytes.Buffer
			for {
				n := int(next.Add(1) - 1)
				if d == 0 && n >= len(requests) {
					return nil
				}
				r, sent := requests[n%len(requests)], time.Now()
				if err := c[i].exchange(r, &response); err != nil {
					return err
				}
				latencies[i] = append(latencies[i], time.Since(sent))
				if err := r.check(response.Bytes()); err != nil || d > 0 && time.Since(begun) >= d {
					return err
				}
			}
		})
	}
	err := g.Wait()
	l := &load{elapsed: time.Since(begun), latencies: slices.Concat(latencies...)}
	slices.Sort(l.latencies)
	return l, err
}

func (c client) exchange(r *request, response *bytes.Buffer) error {
	if _, err := c.conn.Write(r.wire); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	response.Reset()
	if _, err = response.ReadFrom(resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.500s", resp.Status, response)
	}
	return err
}
