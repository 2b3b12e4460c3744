//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
)

// The load on the instances in TestRollingRestart.
const (
	rollingClients     = 200
	rollingSubscribers = 500
	rollingTokens      = 60
)

// instance is one of the programs behind the balancer.
type instance struct {
	*program
	proxy *httputil.ReverseProxy
	// sockets counts the open WebSockets to the instance.
	sockets atomic.Int64
}

// balancer distributes requests to the instances whose readiness probe succeeds.
type balancer struct {
	*httptest.Server
	ctx    context.Context
	probes sync.WaitGroup

	mu             sync.Mutex
	readyInstances []*instance
	turn           int
}

func newBalancer(t testing.TB) *balancer {
	b := &balancer{}
	ctx, cancel := context.WithCancel(context.Background())
	b.ctx, b.Server = ctx, httptest.NewServer(b)
	t.Cleanup(func() {
		cancel()
		b.probes.Wait()
		b.Close()
	})
	return b
}

// ServeHTTP forwards a request or a WebSocket.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inst := b.next()
	if inst == nil {
		http.Error(w, "no instance is ready", http.StatusServiceUnavailable)
		return
	}
	if r.Header.Get("Upgrade") != "" {
		inst.sockets.Add(1)
		defer inst.sockets.Add(-1)
	} else {
		// Read the whole body first. Otherwise, the server might close the body before the proxy has read it, and the proxy could
		// not reuse its connection to the instance.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	inst.proxy.ServeHTTP(w, r)
}

func (b *balancer) next() *instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.readyInstances) == 0 {
		return nil
	}
	b.turn++
	return b.readyInstances[b.turn%len(b.readyInstances)]
}

// note records whether an instance is ready.
func (b *balancer) note(inst *instance, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch i := slices.Index(b.readyInstances, inst); {
	case ready && i < 0:
		b.readyInstances = append(b.readyInstances, inst)
	case !ready && i >= 0:
		b.readyInstances = slices.Delete(b.readyInstances, i, i+1)
	}
}

func (b *balancer) isReady(inst *instance) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.readyInstances, inst)
}

// add starts to probe an instance, and returns when the instance is ready. The probes stop when the instance ends.
func (b *balancer) add(t testing.TB, p *program) *instance {
	t.Helper()
	instanceURL, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: rollingClients, DisableCompression: true}
	inst := &instance{program: p, proxy: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(instanceURL)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		ErrorLog: log.New(t.Output(), "", 0),
	}}
	b.probes.Go(func() {
		defer transport.CloseIdleConnections()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				b.note(inst, b.probe(inst))
			case <-p.ended:
				b.note(inst, false)
				return
			case <-b.ctx.Done():
				return
			}
		}
	})
	eventually(t, "the balancer has seen that the instance is ready", func() bool { return b.isReady(inst) })
	return inst
}

func (b *balancer) probe(inst *instance) bool {
	r, err := http.NewRequestWithContext(b.ctx, http.MethodGet, inst.URL()+httpapi.PathReady, nil)
	if err != nil {
		return false
	}
	resp, err := inst.client.Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// follower is a client that subscribes to a price or a book. It reconnects when the service closes the connection for a restart.
type follower struct {
	token string
	book  bool

	mu sync.Mutex
	// last is the last price, or the sequence number of the last book.
	last string
	// opened counts the connections that delivered a first state.
	opened int
}

func (f *follower) openedCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// isCurrent reports whether the last value is the venue's current value.
func (f *follower) isCurrent(w *recordedVenue) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.mu.RLock()
	defer w.mu.RUnlock()
	if f.book {
		b, _ := w.venue.Book(f.token)
		return strings.HasPrefix(f.last, w.venue.Epoch()) && strings.HasSuffix(f.last, ":"+fmt.Sprint(b.Seq))
	}
	q, _ := w.venue.Quote(f.token)
	return demo.Price(units(f.last, 4)) == q.Price
}

// follow subscribes, and subscribes again after each restart of the service, until the load is stopped or an error occurs.
func (f *follower) follow(t testing.TB, c *checkedLoad) {
	for c.ctx.Err() == nil {
		err := f.connect(t, c)
		switch {
		case c.ctx.Err() != nil:
		case websocket.CloseStatus(err) == websocket.StatusServiceRestart:
			c.count("told to connect again")
		default:
			c.addError(fmt.Errorf("a subscription was lost: %w", err))
			return
		}
	}
}

// connect subscribes over one connection, and returns the error that ended the connection.
func (f *follower) connect(t testing.TB, c *checkedLoad) error {
	conn, _, err := websocket.Dial(c.ctx, strings.Replace(c.URL(), "http", "ws", 1)+httpapi.PathGraphQL, &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: c.client,
	})
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	k := &socket{conn: conn}
	query, variables := loadPrices, vars{"ids": []string{f.token}}
	if f.book {
		query, variables = loadBook, vars{"id": f.token}
	}
	subscribe, started := frame{ID: "1", Type: "subscribe", Payload: json.RawMessage(asJSON(vars{"query": query, "variables": variables}))}, false
	if err := k.write(frame{Type: "connection_init"}); err != nil {
		return err
	}
	r := &replay{depth: recordedDepth, hurried: true}
	for {
		m, err := k.read(c.ctx)
		if err != nil {
			return err
		}
		switch m.Type {
		case "connection_ack":
			err = k.write(subscribe)
		case "ping":
			err = k.write(frame{Type: "pong"})
		case "next":
			ev := eventOf(m.Type, m.Payload)
			if len(ev.errors) > 0 {
				return fmt.Errorf("an event with errors: %v", ev.errors)
			}
			for _, v := range ev.data.(map[string]any) {
				reason := text(v, "reason")
				if !started && reason != "INITIAL" && reason != "RESYNC" {
					return fmt.Errorf("the first event of a connection has the reason %s", reason)
				}
				f.take(t, c, r, v, !started)
				started = true
			}
		default:
			return fmt.Errorf("an unexpected message %s: %s", m.Type, m.Payload)
		}
		if err != nil && websocket.CloseStatus(err) < 0 {
			_, err = k.read(c.ctx) // the error of a write has no close code, but the error of the next read has one
		}
		if err != nil {
			return err
		}
	}
}

// take checks a value against the recorded venue and stores it in last.
func (f *follower) take(t testing.TB, c *checkedLoad, r *replay, v any, first bool) {
	last := text(v, "sequence")
	if f.book {
		r.take(t, v)
		c.addError(c.recorded.checkBook(f.token, at(v, "book")))
	} else {
		c.addError(c.recorded.checkPrice(at(v, "price")))
		last = text(v, "price.price")
	}
	c.count("event " + text(v, "reason"))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = last
	if first {
		f.opened++
	}
}

// queryInTurns sends a query each time it receives a value from the channel turns, until turns is closed. Each response must be
// complete.
func queryInTurns(c *checkedLoad, turns <-chan struct{}, tokens []string) {
	for range turns {
		var out struct {
			Data   any          `json:"data"`
			Errors []graphError `json:"errors"`
		}
		err := c.post(context.Background(), loadQuery, vars{"ids": tokens, "a": addressOf3}, keyOf3, &out)
		if len(out.Errors) > 0 {
			err = errors.Join(err, fmt.Errorf("%v: %s", out.Errors[0], out.Errors[0].Message))
		}
		if err != nil {
			c.addError(fmt.Errorf("a query failed: %w", err))
			continue
		}
		c.count("answers")
		if n := len(list(out.Data, "tokens")); n != len(tokens) || text(out.Data, "user.balance.cashBalance") == "" {
			c.addError(fmt.Errorf("an answer is incomplete: %s", asJSON(out.Data)))
		}
		for _, v := range list(out.Data, "tokens") {
			c.addError(c.recorded.checkPrice(at(v, "price")))
			c.addError(c.recorded.checkBook(text(v, "tokenId"), at(v, "orderbook")))
		}
	}
}

// TestRollingRestart checks that no query fails when two instances behind a balancer are restarted one after the other. Every
// subscription must continue with a complete state, and no client may get a value that the venue never had.
func TestRollingRestart(t *testing.T) {
	t.Parallel() // the test mostly waits
	w, b := newRecordedVenue(t, 1, rollingTokens, [2]int{}), newBalancer(t)
	startInstance := func() *instance { return b.add(t, runProgram(t, w.args("--log-level=info", "--drain-delay=2s")...)) }
	first, second := startInstance(), startInstance()
	c := newCheckedLoad(&service{
		App:    &app.App{Server: &app.Server{Listener: remoteListener{addr: b.Listener.Addr()}}},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: rollingClients, DisableCompression: true}},
	}, w)
	t.Cleanup(c.client.CloseIdleConnections)

	followers := make([]*follower, rollingSubscribers)
	for i := range followers {
		f := &follower{token: w.tokens[i%len(w.tokens)], book: i%7 == 0}
		followers[i] = f
		c.goroutines.Go(func() { f.follow(t, c) })
	}
	t.Cleanup(c.stopLoad)
	opened := func() (total, least int) {
		least = followers[0].openedCount()
		for _, f := range followers {
			total, least = total+f.openedCount(), min(least, f.openedCount())
		}
		return total, least
	}
	eventually(t, "all subscribers have a first state", func() bool { total, _ := opened(); return total == rollingSubscribers })

	turns, over := make(chan struct{}), make(chan struct{})
	var load sync.WaitGroup
	for i := range rollingClients {
		offset := i % (len(w.tokens) - 3)
		load.Go(func() { queryInTurns(c, turns, w.tokens[offset:offset+3]) })
	}
	load.Go(func() {
		defer close(turns)
		market, client := time.NewTicker(400*time.Millisecond), time.NewTicker(10*time.Millisecond)
		defer market.Stop()
		defer client.Stop()
		for {
			select {
			case <-market.C:
				w.step()
			case <-client.C:
				select {
				case turns <- struct{}{}:
				default: // all clients are busy
				}
			case <-over:
				return
			}
		}
	})

	began, connections := time.Now(), rollingSubscribers
	for i, inst := range []*instance{first, second} {
		answersBefore, sockets := c.countOf("answers"), int(inst.sockets.Load())
		if sockets < rollingSubscribers/3 {
			t.Errorf("only %d of %d subscribers are on instance %d, want at least a third", sockets, rollingSubscribers, i)
		}
		eventually(t, "there are more new responses than clients", func() bool { return c.countOf("answers") > answersBefore+rollingClients })
		inst.terminate(t)
		inst.wantExit(t, 0)
		connections += sockets
		if !until(3*patience, func() bool { total, _ := opened(); return total >= connections }) { // a busy machine needs minutes
			t.Fatal("some subscribers have not connected again")
		}
		startInstance()
	}
	if total, least := opened(); total != connections || least < 2 {
		t.Errorf("the subscribers opened %d connections, and each subscriber at least %d; want %d connections, and at least 2 for each subscriber", total, least, connections)
	}
	close(over)
	load.Wait()
	eventually(t, "the last value of each subscriber is the venue's current value", func() bool {
		return !slices.ContainsFunc(followers, func(f *follower) bool { return !f.isCurrent(w) })
	})
	c.stopLoad()
	c.wantNothingWrong(t)
	t.Logf("both restarts took %v; the clients saw %v", time.Since(began).Round(time.Millisecond), c.counts())
}
