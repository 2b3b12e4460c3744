package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// request is a GraphQL request. want is the expected response with sorted members. seen is a response that was equal to it.
type request struct {
	body   []byte
	header http.Header
	want   []byte
	seen   atomic.Pointer[[]byte]
}

// newRequest returns a request for data. credentials is a JSON object, or empty.
func newRequest(document string, variables object, credentials string, data object) *request {
	body, err := json.Marshal(object{"query": document, "variables": variables})
	want, err2 := json.Marshal(object{"data": data})
	if err := errors.Join(err, err2); err != nil {
		panic("bench: " + err.Error()) // impossible: strings, lists and objects always have a JSON form
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/graphql-response+json, application/json;q=0.9"}}
	if credentials != "" {
		header.Set("X-Venue-Credentials", base64.StdEncoding.EncodeToString([]byte(credentials)))
	}
	return &request{body: body, header: header, want: want}
}

// check returns an error if a response differs from the data of the venue, for example because it has errors.
func (r *request) check(response []byte) error {
	if seen := r.seen.Load(); seen != nil && bytes.Equal(*seen, response) {
		return nil
	}
	var in any
	if err := json.Unmarshal(response, &in); err != nil {
		return fmt.Errorf("%w: %.300s", err, response)
	}
	if sorted, err := json.Marshal(in); err != nil || !bytes.Equal(sorted, r.want) {
		return fmt.Errorf("the response is\n%.2000s\nand the venue says\n%.2000s", sorted, r.want)
	}
	seen := bytes.Clone(response)
	r.seen.Store(&seen)
	return nil
}

// clients send requests to a server. Each client has one connection, and sends the next request when it has received a response.
type clients struct {
	transport *http.Transport
	url       string
	count     int
}

func newClients(p *process, count int) *clients {
	// The servers are compared without compression, because limit does not compress.
	return &clients{&http.Transport{MaxIdleConnsPerHost: count, DisableCompression: true}, p.url + "/graphql", count}
}

func (c *clients) close() { c.transport.CloseIdleConnections() }

// load is what the clients measured.
type load struct {
	elapsed   time.Duration
	cpu       time.Duration   // processor time of the server, or 0 if the server did nothing else meanwhile
	latencies []time.Duration // in ascending order
}

// percentile returns the latency that the given share of the requests did not exceed.
func (l *load) percentile(share float64) float64 {
	return float64(l.latencies[min(int(share*float64(len(l.latencies))), len(l.latencies)-1)])
}

// send has all clients send the requests in turn for the given duration, or each request once if the duration is 0. It checks every
// response.
func (c *clients) send(ctx context.Context, requests []*request, d time.Duration) (*load, error) {
	var next atomic.Int64
	begun, latencies := time.Now(), make([][]time.Duration, c.count)
	g, ctx := errgroup.WithContext(ctx)
	for i := range latencies {
		g.Go(func() error {
			var response bytes.Buffer
			for {
				n := int(next.Add(1) - 1)
				if d == 0 && n >= len(requests) {
					return nil
				}
				r, sent := requests[n%len(requests)], time.Now()
				if err := c.exchange(ctx, r, &response); err != nil {
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

// exchange sends a request and reads the body of the response.
func (c *clients) exchange(ctx context.Context, r *request, response *bytes.Buffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	req.Header = r.header
	resp, err := c.transport.RoundTrip(req)
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
