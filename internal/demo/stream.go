package demo

import (
	"net/http"
	"sync/atomic"
	"time"

	"oddsgraph/internal/demo/server"
)

// StreamPath is the path of the venue's WebSocket.
const StreamPath = "/ws"

// The close codes of the venue's stream that RFC 6455 does not define. The comments say what a client should do.
const (
	// CloseCredentials: the credentials were refused or have expired. A retry with the same credentials is useless.
	CloseCredentials = 4001
	// CloseSlow: the client read too slowly and has lost frames. It may reconnect at once.
	CloseSlow = 4002
	// CloseShed: the venue restarts or sheds load. Clients should reconnect after a random time of up to 10 seconds.
	CloseShed = 4003
	// CloseAbuse: the client repeatedly exceeded a limit. It should reconnect after 60 seconds.
	CloseAbuse = 4008
)

const (
	heartbeat  = 15 * time.Second
	maxBeatIDs = 100 // identifiers of each channel in one heartbeat
	maxTopics  = 500 // of a stream
	// framesPerSecond limits the frames from a client. Beyond this rate, requests are refused, and beyond twice this rate, the stream
	// is closed.
	framesPerSecond = 20
)

type streams struct {
	sockets         server.Sockets
	framesPerSecond int

	// Guarded by the venue's lock.
	users      []*topic
	openTopics [channels]int // number of topics with subscribers
	subs       [channels]int // number of subscriptions
}

func newStreams(every time.Duration, counts *server.Counts) streams {
	limits := server.StandardLimits
	limits.FrameBytes, limits.Slow, limits.Every = 64<<10, CloseSlow, every
	return streams{sockets: server.Sockets{Limits: limits, Counts: counts}, framesPerSecond: framesPerSecond}
}

type streamConn struct {
	*server.Socket
	v       *Venue
	greeted atomic.Bool // hello was sent

	handled, received server.Limiter  // of frames from the client
	addresses         map[string]bool // authenticated addresses

	// Changed by the reader under the venue's lock.
	subs  map[topicKey]*topic
	turns [channels][]*topic // by channel, in the order in which heartbeats list the topics
	// Used only by Beat. For each channel, the index in turns of the last topic that the previous heartbeat listed.
	lastBeat [channels]int
}

func (v *Venue) serveStream(w http.ResponseWriter, r *http.Request) {
	served := v.stream.sockets.Serve(w, r, func(s *server.Socket) server.Client {
		return &streamConn{
			Socket: s, v: v, subs: make(map[topicKey]*topic), addresses: make(map[string]bool),
			handled: server.Limiter{Span: time.Second}, received: server.Limiter{Span: time.Second},
		}
	})
	if !served {
		a := newAnswer()
		a.header.Set("Retry-After", "5") // seconds
		a.fail(&apiError{http.StatusServiceUnavailable, codeUnavailable, "the stream takes no more connections"})
		a.send(w)
	}
}

// Begin implements [server.Client].
func (c *streamConn) Begin() {
	c.v.mu.RLock() // the epoch must not change between greet and greeted.Store
	defer c.v.mu.RUnlock()
	c.greet()
	c.greeted.Store(true)
}

// Beat sends a heartbeat with the sequence numbers of some of the topics.
func (c *streamConn) Beat() {
	c.v.mu.RLock()
	defer c.v.mu.RUnlock()
	c.Push(c.heartbeat())
}

// End implements [server.Client].
func (c *streamConn) End() {
	c.v.mu.Lock()
	defer c.v.mu.Unlock()
	for key := range c.subs {
		c.v.leave(c, key)
	}
}

// Close ends all streams with code 1001 and returns when they have ended. It disconnects clients that do not answer within two
// seconds. After Close no stream opens, but the venue still serves the REST API. Close may be called more than once.
func (v *Venue) Close() { v.stream.sockets.Close() }

// Restart begins a new epoch, as after a crash. All sequence numbers start again; prices, books and wallets do not change. If the
// code is not 0, the venue closes all streams with the code. If the code is 0, the streams stay open and get a new hello and the
// present state of each topic.
func (v *Venue) Restart(code int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.epoch = newEpoch()
	for _, in := range v.listing.instruments {
		in.bookSeq, in.priceSeq = 1, 1
	}
	for _, t := range v.listing.tokens {
		t.tape.seq = 1
	}
	for _, m := range v.listing.markets {
		m.seq = 1
	}
	for _, w := range v.accounts {
		w.seq = 0
	}
	v.derived.each(func(w *wallet) { w.seq = 0 })
	for _, t := range v.stream.users {
		t.wallet.seq = 1
	}
	for _, s := range v.stream.sockets.All() {
		c := s.Client.(*streamConn)
		if code != 0 {
			c.Shut(code, "the venue restarts", true)
		} else if c.greeted.Load() {
			c.greet()
			for _, t := range c.subs {
				t.sendSnapshot(c)
			}
		}
	}
}

// Stats are the counts of a venue, see [Venue.Stats].
type Stats = server.Stats

// Stats returns the counts. The maps omit paths without requests and statuses without responses.
func (v *Venue) Stats() Stats {
	s := v.counts.Stats(&v.stream.sockets)
	v.mu.RLock()
	defer v.mu.RUnlock()
	for ch, name := range channelNames {
		if n := v.stream.openTopics[ch]; n > 0 {
			s.Stream.Topics[name] = int64(n)
		}
		if n := v.stream.subs[ch]; n > 0 {
			s.Stream.Subscriptions[name] = int64(n)
		}
	}
	return s
}

// Reset zeroes the stats. It does not change the markets.
func (v *Venue) Reset() { v.counts.Reset() }
