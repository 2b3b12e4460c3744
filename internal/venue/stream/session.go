package stream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

const (
	// The session ends after maxGarbage frames in a row that are not JSON.
	maxGarbage = 10
	// If no frame arrives for silentHeartbeats heartbeat intervals, the session ends.
	silentHeartbeats = 2.5
	// authWithin is the maximum wait for the response to auth. After this wait, the session sends the subscription anyway.
	authWithin = 500 * time.Millisecond
	// closeCodeWithin is the maximum wait for the venue's close code after a failed write.
	closeCodeWithin = time.Second
	// maxEvents is the maximum number of decoded frames that wait for session.loop.
	maxEvents = 16
)

// phase is the progress of opening a socket.
type phase uint8

const (
	phaseHello phase = iota // the session waits for the venue's hello
	phaseAuth               // the session waits for the response to the auth request
	phaseOpen               // the session sends subscriptions and all other requests
)

// session serves one socket. Its loop runs on the connection's goroutine, read, write and maintain on others. Only the loop uses
// phase and the fields below it.
type session struct {
	client *Client
	k      *connection
	socket Conn

	codec   Codec
	events  chan []Event
	readErr error // set before events is closed
	// decoding is locked while a frame is decoded and until its events are in the channel. Without the lock, the events of read
	// and maintain could be in the wrong order. ended reports whether the channel is closed.
	decoding   sync.Mutex
	ended      bool
	maintained chan error
	out        chan [][]byte
	written    chan error

	phase  phase
	liveAt time.Time
	limits Hello
	queue  sendQueue

	// armed is the time at which timer fires.
	timer *time.Timer
	armed time.Time

	// lastFrame is the time of the last frame. silence is the longest time without a frame before the session ends.
	lastFrame time.Time
	silence   time.Duration
	// phaseBy is the time at which phaseHello or phaseAuth ends without a response.
	phaseBy time.Time
	// pingAt is the time of the next ping. pongBy is the deadline of the response to the last ping. pongBy is zero after the response.
	pingAt, pongBy time.Time
	authRid        string
	// writeBy is the deadline of the current write, or zero. After a write has failed with failure, it is when the session ends.
	writeBy time.Time
	failure error
	// idleBy is the time at which the session tries to retire a public connection that still has no topics. It is zero if the
	// connection has topics.
	idleBy        time.Time
	garbageFrames int
}

func newSession(k *connection, socket Conn) *session {
	s := &session{
		client:  k.client,
		k:       k,
		socket:  socket,
		codec:   k.client.cfg.Protocol.NewCodec(k.identity, Env{k.client.cfg.Observer, k.client.cfg.Market}),
		events:  make(chan []Event, maxEvents),
		out:     make(chan [][]byte, 1),
		written: make(chan error, 1),

		maintained: make(chan error, 1),
	}
	s.queue.init(k)
	return s
}

func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pumps sync.WaitGroup
	pumps.Go(func() { s.read(ctx) })
	pumps.Go(func() { s.write(ctx) })
	if m, ok := s.codec.(Maintainer); ok {
		pumps.Go(func() { s.maintain(ctx, m) })
	}

	err := s.loop(ctx)
	s.reportDown(err)
	code := 0
	if ctx.Err() != nil || errors.Is(err, errRetired) {
		code = closeNormal
	}
	cancel()
	_ = s.socket.Close(code)
	pumps.Wait()
	return err
}

func (s *session) write(ctx context.Context) {
	for {
		select {
		case frames := <-s.out:
			var err error
			for _, frame := range frames {
				if err = s.socket.Write(ctx, frame); err != nil {
					break
				}
			}
			s.written <- err
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) loop(ctx context.Context) error {
	now := time.Now()
	s.timer = time.NewTimer(time.Hour)
	defer s.timer.Stop()
	s.lastFrame, s.pingAt, s.phaseBy = now, now.Add(s.pingEvery()), now.Add(helloWithin)
	s.setSilence(0)
	if !s.client.cfg.Protocol.Greets {
		if err := s.afterHello(now); err != nil {
			return err
		}
	}
	for {
		now = time.Now()
		// Events that have arrived are handled before deadlines, because an event may be the response that a deadline waits for.
		if len(s.events) == 0 {
			if err := s.expire(now); err != nil {
				return err
			}
		}
		s.send(now)
		s.arm(now)
		select {
		case events, ok := <-s.events:
			if !ok {
				return s.readFailure(ctx)
			}
			if err := s.handle(events); err != nil {
				return err
			}
		case err := <-s.maintained:
			return &disconnectError{"frozen", err}
		case err := <-s.written:
			s.writeBy = time.Time{}
			if err != nil {
				s.failure, s.writeBy = &disconnectError{"write", err}, now.Add(closeCodeWithin)
			}
		case <-s.k.wake:
			if err := s.sync(time.Now()); err != nil {
				return err
			}
		case <-s.timer.C:
			s.armed = time.Time{}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *session) readFailure(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.failure != nil && codeOf(s.readErr) == 0:
		return s.failure
	}
	return s.readErr
}

func (s *session) pingEvery() time.Duration {
	return cmp.Or(s.client.cfg.Protocol.PingEvery, pingEvery)
}

func (s *session) setSilence(heartbeat time.Duration) {
	byHeartbeat := time.Duration(silentHeartbeats * float64(cmp.Or(heartbeat, assumedHeartbeat)))
	s.silence = cmp.Or(s.client.cfg.Protocol.Silence, byHeartbeat)
}

func (s *session) expire(now time.Time) error {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch {
	case due(s.writeBy):
		return cmp.Or[error](s.failure, errWrite)
	case due(s.pongBy):
		return errPong
	case due(s.lastFrame.Add(s.silence)):
		return errSilence
	case due(s.phaseBy) && s.phase == phaseHello:
		s.client.cfg.Observer.Drift("no hello")
		return s.afterHello(now)
	case due(s.phaseBy):
		return s.afterAuth(now)
	case due(s.idleBy):
		if s.client.retire(s.k) {
			return errRetired
		}
		s.idleBy = now.Add(idleFor)
	}
	return nil
}

func (s *session) arm(now time.Time) {
	next := s.lastFrame.Add(s.silence)
	for _, t := range []time.Time{s.writeBy, s.pongBy, s.phaseBy, s.idleBy} {
		next = earlier(next, t)
	}
	if s.writeBy.IsZero() && s.phase != phaseHello {
		if s.pongBy.IsZero() {
			next = earlier(next, market.Later(s.pingAt, s.queue.window.opensAt()))
		}
		next = earlier(next, s.queue.workAt(now, s.phase == phaseOpen))
	}
	if !next.Equal(s.armed) {
		s.timer.Reset(next.Sub(now))
		s.armed = next
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// afterHello ends phaseHello. If the connection has credentials, phaseAuth begins, otherwise phaseOpen.
func (s *session) afterHello(now time.Time) error {
	s.queue.setLimits(s.limits)
	s.liveAt = now
	for _, e := range s.k.watched() {
		if s.k.isUser() && e.creds != nil {
			s.phase, s.phaseBy = phaseAuth, now.Add(authWithin)
			s.queue.auth = &Request{Verb: VerbAuth, Topics: []messages.Topic{e.topic}, Credentials: e.creds}
			return nil
		}
	}
	return s.afterAuth(now)
}

// afterAuth begins phaseOpen and queues the subscriptions of all topics.
func (s *session) afterAuth(now time.Time) error {
	s.phase, s.phaseBy = phaseOpen, time.Time{}
	if s.limits.Topics > 0 {
		s.client.shrink(s.k, s.limits.Topics)
	}
	s.k.reportOpen()
	s.k.resubscribeAll()
	return s.sync(now)
}

// sync handles the calls of Watch, Unwatch and Resync since the last sync. Before phaseOpen, it only releases topics, because
// afterAuth subscribes to all topics later.
func (s *session) sync(now time.Time) error {
	if s.phase == phaseOpen {
		s.queue.sync(now)
	} else if s.k.releaseUnwatched() {
		return errRetired
	}
	return s.checkIdle(now)
}

// checkIdle retires a user connection without topics at once. If a public connection has no topics, checkIdle sets idleBy.
func (s *session) checkIdle(now time.Time) error {
	switch {
	case s.k.hasTopics():
		s.idleBy = time.Time{}
	case s.k.isUser():
		if s.client.retire(s.k) {
			return errRetired
		}
	case s.idleBy.IsZero():
		s.idleBy = now.Add(idleFor)
	}
	return nil
}

// send passes the next request to the writer, if one is due, no write is running or has failed, and the venue's limits allow a frame.
func (s *session) send(now time.Time) {
	if !s.writeBy.IsZero() || s.phase == phaseHello || !s.queue.window.isOpen(now) {
		return
	}
	var r *Request
	if s.pongBy.IsZero() && !now.Before(s.pingAt) {
		r = &Request{Verb: VerbPing}
	} else {
		r = s.queue.next(now, s.phase == phaseOpen)
	}
	if r == nil {
		return
	}
	r.Rid = s.queue.nextRid()
	if frames := s.codec.Encode(r); len(frames) > 0 {
		s.out <- frames
		s.writeBy = now.Add(writeWithin)
		for range frames {
			s.queue.window.take(now)
		}
	}
	switch r.Verb {
	case VerbPing:
		s.pingAt, s.pongBy = now.Add(s.pingEvery()), now.Add(pongWithin)
	case VerbAuth:
		s.authRid = r.Rid
	default:
		s.queue.markSent(r, now)
	}
}
