package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	address = "0x1111111111111111111111111111111111111111"
	canary  = `{"apiKey":"canary-key-7f3a","secret":"canary/secret+9c=","passphrase":"canary \"phrase\"","extra":"canary-extra"}`
	// helloFrame is the hello that the venue sends by default.
	helloFrame = `{"type":"hello","epoch":"e1","heartbeatMs":300000,"limits":{"topics":500,"depth":200,"framesPerSecond":20,"frameBytes":65536}}`
)

func credentials(t testing.TB, s string) *market.Credentials {
	t.Helper()
	c, err := market.ParseCredentials([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sentFrame is a frame that the client has sent.
type sentFrame struct {
	at   time.Duration
	conn int
	raw  string

	Type, Rid, Channel, TokenID, MarketID, Address string
	TokenIDs, MarketIDs                            []string
	Depth                                          int
	Credentials                                    map[string]string
}

// venue is a scripted venue. By default, it accepts connections and speaks the protocol of testCodec.
type venue struct {
	t     *testing.T
	start time.Time
	// If hello is not empty, the venue sends it on each new connection. If refuse is not nil, Dial fails with this error. respond
	// may respond to a frame from the client. If respond is nil or returns false, the venue sends its default response. If stalled
	// is true, the client's writes block.
	hello   string
	refuse  error
	respond func(c *fakeConn, f sentFrame) bool
	stalled bool
	// If broken is true, the client's writes fail. If slow is true, Dial blocks until its context ends.
	broken, slow bool
	// handler is the client's Handler. If handler is nil, the Handler is bench.calls.
	handler Handler

	mu      sync.Mutex
	dials   []time.Duration
	headers []http.Header
	conns   []*fakeConn
	frames  []sentFrame
}

// fakeConn is a connection between the client and the venue. The client uses the methods of Conn. The other methods belong to the
// venue.
type fakeConn struct {
	v        *venue
	number   int
	toClient chan string
	once     sync.Once
	closed   chan struct{}
	err      error
	// code is the argument of Close, or -1 before Close.
	code int
}

func (v *venue) Dial(ctx context.Context, _ string, header http.Header) (Conn, error) {
	v.mu.Lock()
	slow := v.slow
	v.mu.Unlock()
	if slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dials = append(v.dials, time.Since(v.start))
	v.headers = append(v.headers, header)
	if v.refuse != nil {
		return nil, v.refuse
	}
	c := &fakeConn{v: v, number: len(v.conns), toClient: make(chan string, 10_000), closed: make(chan struct{}), code: -1}
	v.conns = append(v.conns, c)
	if v.hello != "" {
		c.toClient <- v.hello
	}
	return c, nil
}

func (c *fakeConn) Read(context.Context) ([]byte, error) {
	select {
	case f := <-c.toClient:
		return []byte(f), nil
	default:
	}
	select {
	case f := <-c.toClient:
		return []byte(f), nil
	case <-c.closed:
		return nil, c.err
	}
}

func (c *fakeConn) Write(_ context.Context, raw []byte) error {
	c.v.mu.Lock()
	stalled, broken := c.v.stalled, c.v.broken
	c.v.mu.Unlock()
	if stalled {
		<-c.closed
	}
	if broken {
		return errors.New("broken pipe")
	}
	select {
	case <-c.closed:
		return errors.New("closed")
	default:
	}
	f := sentFrame{at: time.Since(c.v.start), conn: c.number, raw: string(raw)}
	if err := json.Unmarshal(raw, &f); err != nil {
		c.v.t.Errorf("the client sent %s", raw)
	}
	c.v.mu.Lock()
	c.v.frames = append(c.v.frames, f)
	respond := c.v.respond
	c.v.mu.Unlock()
	if respond == nil || !respond(c, f) {
		c.answer(f)
	}
	return nil
}

func (c *fakeConn) Close(code int) error {
	c.v.mu.Lock()
	if c.code < 0 {
		c.code = code
	}
	c.v.mu.Unlock()
	c.end(errors.New("closed by the client"))
	return nil
}

// end closes the connection. Read then returns err.
func (c *fakeConn) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.closed)
	})
}

// drop closes the connection with a close code from the venue.
func (c *fakeConn) drop(code int) { c.end(&CloseError{Code: code}) }

func (c *fakeConn) send(format string, args ...any) { c.toClient <- fmt.Sprintf(format, args...) }

// answer sends the default response to a frame. The response follows the protocol of testCodec.
func (c *fakeConn) answer(f sentFrame) {
	switch f.Type {
	case "ping":
		c.send(`{"type":"pong","rid":%q}`, f.Rid)
	case "auth":
		c.send(`{"type":"authenticated","rid":%q}`, f.Rid)
	case "unsubscribe":
		c.send(`{"type":"unsubscribed","rid":%q}`, f.Rid)
	case "subscribe":
		c.send(`{"type":"subscribed","rid":%q}`, f.Rid)
		for _, id := range f.TokenIDs {
			c.snapshot(f.Channel, id, 1)
		}
		if f.Channel == "user" {
			c.snapshot("user", "", 1)
		}
	case "resync":
		c.snapshot(f.Channel, f.TokenID, 9)
	}
}

// respondTo returns a function for venue.respond. The function calls respond for each frame of the type kind.
func respondTo(kind string, respond func(c *fakeConn, f sentFrame)) func(*fakeConn, sentFrame) bool {
	return func(c *fakeConn, f sentFrame) bool {
		if f.Type == kind {
			respond(c, f)
		}
		return f.Type == kind
	}
}

// snapshot sends a snapshot of a topic.
func (c *fakeConn) snapshot(channel, id string, seq int) {
	switch channel {
	case "orderbook":
		c.send(`{"type":"orderbook_snapshot","tokenId":%q,"seq":%d,"bids":[],"asks":[]}`, id, seq)
	case "prices":
		c.send(`{"type":"price_update","tokenId":%q,"seq":%d,"price":0.5}`, id, seq)
	case "trades":
		c.send(`{"type":"trades_snapshot","tokenId":%q,"seq":%d,"trades":[]}`, id, seq)
	case "user":
		c.send(`{"type":"user_snapshot","seq":%d,"orders":[],"positions":[]}`, seq)
	}
}

// set calls a function while v.mu is locked.
func (v *venue) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

// conn returns the connection with the number n, counted from 0.
func (v *venue) conn(n int) *fakeConn {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if n >= len(v.conns) {
		v.t.Fatalf("the client has opened only %d connections, so connection %d (counted from 0) does not exist", len(v.conns), n)
	}
	return v.conns[n]
}

func (v *venue) dialled() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.dials)
}

// sent returns the frames of the type kind that the client has sent. If kind is empty, sent returns all frames.
func (v *venue) sent(kind string) []sentFrame {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []sentFrame
	for _, f := range v.frames {
		if kind == "" || f.Type == kind {
			out = append(out, f)
		}
	}
	return out
}

// record is a Handler that records its calls as short texts.
type record struct {
	mu    sync.Mutex
	start time.Time
	calls []string
	times []time.Duration
	// errs contains the errors that Down and Refused have received.
	errs []error
	// acks contains the topics of each call of Acknowledged.
	acks []string
}

func (r *record) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
	r.times = append(r.times, time.Since(r.start))
}

func label(topics []messages.Topic) string {
	ids := make([]string, len(topics))
	for i, t := range topics {
		ids[i] = string(t.Channel) + ":" + t.ID
		if t.Scope != "" {
			ids[i] += "@" + t.Scope
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func (r *record) Up(topics []messages.Topic) { r.add("up %s", label(topics)) }

// Acknowledged adds its topics to acks and not to calls, because most tests compare calls and ignore acknowledgements.
func (r *record) Acknowledged(topics []messages.Topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acks = append(r.acks, label(topics))
}
func (r *record) Down(topics []messages.Topic, err error) {
	r.add("down %s", label(topics))
	r.fail(err)
}
func (r *record) Message(m *messages.Message) {
	r.add("message %s %s/%d", label([]messages.Topic{m.Topic}), m.Epoch, m.Seq)
}
func (r *record) Heartbeat(epoch string, seqs map[messages.Topic]uint64) {
	parts := make([]string, 0, len(seqs))
	for t, n := range seqs {
		parts = append(parts, fmt.Sprintf("%s=%d", label([]messages.Topic{t}), n))
	}
	slices.Sort(parts)
	r.add("heartbeat %s %s", epoch, strings.Join(parts, " "))
}
func (r *record) Refused(t messages.Topic, err error) {
	r.add("refused %s %s", label([]messages.Topic{t}), market.CodeOf(err))
	r.fail(err)
}
func (r *record) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// take returns the recorded calls and forgets them.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls, r.times = nil, nil
	return calls
}

// expect takes the recorded calls and compares them with want.
func (r *record) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("the handler was called with\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// bench contains the client of a test, and the client's venue, metrics and log. If the test does not set venue.handler, calls is
// the client's Handler.
type bench struct {
	*testing.T
	*Client
	venue   *venue
	calls   *record
	observe *observer
	log     *strings.Builder
	stop    func()
}

// observer records the client's metrics.
type observer struct {
	mu      sync.Mutex
	reasons []string
	drifts  []string
	kinds   map[string]int
}

func (o *observer) Frame(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kinds[kind]++
}
func (o *observer) Drift(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drifts = append(o.drifts, what)
}
func (o *observer) Reconnect(reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reasons = append(o.reasons, reason)
}

type lockedBuilder struct {
	mu sync.Mutex
	b  *strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// inBubble runs a test in a synctest bubble. All random numbers of the client are 0.5, so each backoff is three quarters of its bound. The
// test fails if the log or an error contains a secret.
func inBubble(t *testing.T, edit func(*Config, *venue), test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &venue{t: t, start: time.Now(), hello: helloFrame}
		b := &bench{T: t, venue: v, calls: &record{start: v.start}, observe: &observer{kinds: map[string]int{}}, log: &strings.Builder{}}
		cfg := Config{
			URL:      "wss://user:canary-password@venue.example/ws?key=canary-query",
			Dial:     v,
			Protocol: testProtocol(),
			Rand:     func() float64 { return 0.5 },
			Observer: b.observe,
			Log:      slog.New(slog.NewTextHandler(&lockedBuilder{b: b.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		if edit != nil {
			edit(&cfg, v)
		}
		if v.handler == nil {
			v.handler = b.calls
		}
		c, err := New(cfg, v.handler)
		if err != nil {
			t.Fatal(err)
		}
		b.Client = c
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		stopped := false
		b.stop = func() {
			if !stopped {
				stopped = true
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Run returned %v", err)
				}
			}
		}
		go func() { done <- c.Run(ctx) }()
		test(b)
		b.stop()
		if strings.Contains(b.log.String(), "canary") {
			t.Errorf("a secret was logged:\n%s", b.log)
		}
		for _, err := range b.calls.errs {
			if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), "canary") {
				t.Errorf("a secret is in an error: %v", err)
			}
		}
	})
}

func (b *bench) settle() { synctest.Wait() }

// advance advances the time of the bubble by d, and waits until all goroutines block.
func (b *bench) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) watch(topics ...messages.Topic) {
	b.Helper()
	for _, t := range topics {
		if err := b.Watch(t, nil); err != nil {
			b.Fatalf("Watch(%v): %v", t, err)
		}
	}
}

// watchUser watches a user topic with the credentials in canary.
func (b *bench) watchUser(scope string) {
	b.Helper()
	if err := b.Watch(user(scope), credentials(b, canary)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) equal(what string, got, want any) {
	b.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func book(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}
func price(id string) messages.Topic  { return messages.Topic{Channel: messages.ChannelPrices, ID: id} }
func trades(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelTrades, ID: id} }
func user(scope string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelUser, ID: address, Scope: scope}
}

// books returns n book topics.
func books(n int) []messages.Topic {
	out := make([]messages.Topic, n)
	for i := range out {
		out[i] = book(fmt.Sprintf("T%03d", i))
	}
	return out
}

// reasons returns the reason of each call of Observer.Reconnect.
func (b *bench) reasons() []string {
	b.observe.mu.Lock()
	defer b.observe.mu.Unlock()
	return slices.Clone(b.observe.reasons)
}

// frameCount returns the number of frames of a type that the observer has counted.
func (b *bench) frameCount(name string) int {
	b.observe.mu.Lock()
	defer b.observe.mu.Unlock()
	return b.observe.kinds[name]
}
