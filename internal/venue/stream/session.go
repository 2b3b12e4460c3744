package stream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

const (
	// garbageInRow is how many frames in a row that are not JSON end a socket.
	garbageInRow = 10
	// halfHeartbeats is how many halves of the venue's interval without a frame end a socket.
	halfHeartbeats = 5
	// authWithin is how long an answer to auth is waited for. A venue that takes its time gets the subscription behind it.
	authWithin = 500 * time.Millisecond
	// lastWords is how long after a failed write a close code of the venue is waited for.
	lastWords = time.Second
	// inbox is how many frames may wait for the handler.
	inbox = 16
)

// phase is how far the opening of a socket has come.
type phase uint8

const (
	// phaseHello waits for the venue's hello.
	phaseHello phase = iota
	// phaseAuth waits for the answer to auth.
	phaseAuth
	// phaseOpen is when topics are subscribed.
	phaseOpen
)

// session is the life of one socket. Its loop runs on the connection's goroutine and owns everything but the channels;
// a second goroutine reads, a third writes.
type session struct {
	client *Client
	k      *connection
	socket Conn

	events  chan []event
	readErr error // set before events is closed
	out     chan []byte
	written chan error

	phase  phase
	liveAt time.Time
	epoch  string
	limits hello
	outbox outbox

	timer *time.Timer
	armed time.Time

	// heard is when the last frame came, silentAt when to look whether another has, and silence how long may pass.
	heard, silentAt time.Time
	silence         time.Duration
	// phaseBy ends phaseHello and phaseAuth.
	phaseBy time.Time
	// pingAt is when to ping next; pongBy is zero while no ping is unanswered.
	pingAt, pongBy time.Time
	pingRid        string
	authRid        string
	// writeBy is zero while nothing is being written.
	writeBy time.Time
	// failure ends the session at failBy.
	failure error
	failBy  time.Time
	// idleBy is when to give up a connection without topics; zero with some.
	idleBy  time.Time
	garbage int
}

func newSession(k *connection, socket Conn) *session {
	s := &session{
		client:  k.client,
		k:       k,
		socket:  socket,
		events:  make(chan []event, inbox),
		out:     make(chan []byte, 1),
		written: make(chan error, 1),
	}
	s.outbox.init(k)
	return s
}

// run serves the socket until it is lost, not needed or ctx ends, and closes it.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pumps sync.WaitGroup
	pumps.Go(func() { s.read(ctx) })
	pumps.Go(func() { s.write(ctx) })

	err := s.loop(ctx)
	s.down(err)
	code := 0
	if ctx.Err() != nil || errors.Is(err, errRetired) {
		code = closeNormal
	}
	cancel()
	_ = s.socket.Close(code, "")
	pumps.Wait()
	return err
}

// read hands on what the frames say until the socket is closed.
func (s *session) read(ctx context.Context) {
	defer close(s.events)
	in := newDecoder(s.client, s.k.identity)
	for {
		frame, err := s.socket.Read(ctx)
		if err != nil {
			s.readErr = err
			return
		}
		select {
		case s.events <- in.decode(frame, time.Now()):
		case <-ctx.Done():
			return
		}
	}
}

// write sends what it is given, one frame at a time, and reports each.
func (s *session) write(ctx context.Context) {
	for {
		select {
		case frame := <-s.out:
			s.written <- s.socket.Write(ctx, frame)
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) loop(ctx context.Context) error {
	now := time.Now()
	s.timer = time.NewTimer(time.Hour)
	defer s.timer.Stop()
	s.heard, s.pingAt, s.phaseBy = now, now.Add(s.client.cfg.PingEvery), now.Add(s.client.cfg.HelloWithin)
	s.listen(0)
	for {
		now = time.Now()
		// What waits to be read may be what a deadline is for.
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
				return s.ended(ctx)
			}
			if err := s.handle(events); err != nil {
				return err
			}
		case err := <-s.written:
			s.writeBy = time.Time{}
			if err != nil && s.failure == nil {
				s.failure, s.failBy = &lost{"write", err}, now.Add(lastWords)
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

// ended returns why the socket cannot be read any more.
func (s *session) ended(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.failure != nil && codeOf(s.readErr) == 0:
		return s.failure
	}
	return s.readErr
}

// listen sets how long the venue may be silent.
func (s *session) listen(heartbeat time.Duration) {
	s.silence = cmp.Or(heartbeat, s.client.cfg.Heartbeat) * halfHeartbeats / 2
	s.silentAt = s.heard.Add(s.silence)
}

// expire does what the time has come for.
func (s *session) expire(now time.Time) error {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch {
	case due(s.failBy):
		return s.failure
	case due(s.writeBy):
		return errWrite
	case due(s.pongBy):
		return errPong
	case due(s.silentAt):
		if s.silentAt = s.heard.Add(s.silence); due(s.silentAt) {
			return errSilence
		}
	}
	if due(s.phaseBy) {
		switch s.phase {
		case phaseHello:
			s.client.cfg.Observer.Drift("no hello")
			if err := s.begin(now); err != nil {
				return err
			}
		case phaseAuth:
			if err := s.open(now); err != nil {
				return err
			}
		}
	}
	if due(s.idleBy) {
		if s.client.retire(s.k) {
			return errRetired
		}
		s.idleBy = now.Add(s.client.cfg.IdleFor)
	}
	return nil
}

// arm sets the timer to the next deadline.
func (s *session) arm(now time.Time) {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, t := range []time.Time{s.failBy, s.writeBy, s.pongBy, s.silentAt, s.phaseBy, s.idleBy} {
		sooner(t)
	}
	if s.writeBy.IsZero() && s.failure == nil {
		if s.phase != phaseHello && s.pongBy.IsZero() {
			sooner(later(s.pingAt, s.outbox.window.opens()))
		}
		if s.phase != phaseHello {
			sooner(s.outbox.workAt(s.phase == phaseOpen))
		}
	}
	if !next.Equal(s.armed) {
		s.timer.Reset(next.Sub(now))
		s.armed = next
	}
}

// begin follows the hello, or its absence.
func (s *session) begin(now time.Time) error {
	s.outbox.limit(s.limits)
	s.liveAt = now
	if e, ok := s.k.login(); ok {
		s.phase, s.phaseBy = phaseAuth, now.Add(authWithin)
		s.outbox.auth = &request{verb: verbAuth, topics: []market.Topic{e.topic}, creds: e.creds}
		return nil
	}
	return s.open(now)
}

// open follows the authentication: the topics are subscribed.
func (s *session) open(now time.Time) error {
	s.phase, s.phaseBy = phaseOpen, time.Time{}
	if s.limits.topics > 0 {
		s.client.shrink(s.k, s.limits.topics)
	}
	s.k.up()
	s.k.renew()
	return s.sync(now)
}

// sync takes over what is watched and what was asked for.
func (s *session) sync(now time.Time) error {
	if s.phase != phaseOpen {
		return s.retired(now)
	}
	if s.outbox.sync(now) {
		return errAsked
	}
	return s.retired(now)
}

// retired ends the session of a user topic that is not watched any more at once, and that of a public connection without
// topics after a while.
func (s *session) retired(now time.Time) error {
	s.client.mu.Lock()
	if s.phase != phaseOpen && s.k.user() {
		for _, e := range s.k.topics {
			if !e.wanted {
				s.client.release(e)
			}
		}
	}
	empty := len(s.k.topics) == 0
	s.client.mu.Unlock()
	switch {
	case !empty:
		s.idleBy = time.Time{}
	case s.k.user():
		if s.client.retire(s.k) {
			return errRetired
		}
	case s.idleBy.IsZero():
		s.idleBy = now.Add(s.client.cfg.IdleFor)
	}
	return nil
}

// send hands frames to the writer as far as the venue's limits allow.
func (s *session) send(now time.Time) {
	if !s.writeBy.IsZero() || s.failure != nil || s.phase == phaseHello || !s.outbox.window.open(now) {
		return
	}
	var r *request
	if s.pongBy.IsZero() && !now.Before(s.pingAt) {
		r = &request{verb: verbPing}
	} else {
		r = s.outbox.next(now, s.phase == phaseOpen)
	}
	if r == nil {
		return
	}
	r.rid = s.outbox.number()
	s.out <- encode(r)
	s.writeBy = now.Add(s.client.cfg.WriteWithin)
	s.outbox.window.take(now)
	switch r.verb {
	case verbPing:
		s.pingRid, s.pingAt, s.pongBy = r.rid, now.Add(s.client.cfg.PingEvery), now.Add(s.client.cfg.PongWithin)
	case verbAuth:
		s.authRid = r.rid
	case verbSubscribe:
		s.outbox.sent(r, now)
		s.client.handler.Up(s.epoch, r.topics)
	case verbResync:
		s.client.count.resyncs.Add(1)
		s.outbox.sent(r, now)
	}
}

// handle takes what a frame says. No deadline is looked at meanwhile.
func (s *session) handle(events []event) error {
	for i := range events {
		e := &events[i]
		s.heard = e.at
		if e.kind == eventGarbage {
			if s.garbage++; s.garbage >= garbageInRow {
				return errGarbage
			}
			continue
		}
		s.garbage = 0
		s.client.count.last.Store(e.at.UnixNano())
		s.pongBy = time.Time{} // any frame shows that the venue is there, so one that never answers pings is not dropped
		var err error
		switch e.kind {
		case eventHello:
			err = s.greet(e)
		case eventAck:
			if topics := s.outbox.acknowledge(e); len(topics) > 0 {
				s.client.handler.Acknowledged(topics)
			}
			if s.phase == phaseAuth && e.rid != "" && e.rid == s.authRid {
				err = s.open(e.at)
			}
		case eventError:
			err = s.refused(e)
		case eventHeartbeat:
			s.beat(e)
		case eventMessage:
			if s.outbox.hear(e.message) {
				s.client.handler.Message(e.message)
			}
		case eventBad:
			s.outbox.spoilt(e.topic, e.at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// greet takes the venue's hello. One that comes after the wait for it changes what it can.
func (s *session) greet(e *event) error {
	s.epoch, s.limits = e.epoch, e.hello
	s.listen(e.hello.heartbeat)
	if s.phase == phaseHello {
		return s.begin(e.at)
	}
	s.outbox.limit(s.limits)
	return nil
}

// beat hands on the numbers of those topics that are carried here.
func (s *session) beat(e *event) {
	for t := range e.seqs {
		if !s.outbox.carries(t) {
			delete(e.seqs, t)
		}
	}
	if len(e.seqs) > 0 {
		s.client.handler.Heartbeat(e.epoch, e.seqs)
	}
}

// refused takes an error frame. Only those about the whole connection end it.
func (s *session) refused(e *event) error {
	class := classify(e.code)
	if e.rid != "" && e.rid == s.authRid || e.rid == "" && s.k.user() && class == classUnauthenticated {
		if class == classLater {
			return errLimited
		}
		err := errUnauthenticated
		if class == classForbidden {
			err = errForbidden
		}
		s.client.refuseAll(s.k, err)
		s.outbox.drop()
		return s.retired(e.at)
	}
	down, refused := s.outbox.refused(e, class)
	if len(down) > 0 {
		s.client.handler.Down(down, errors.New("the venue put the subscription off"))
	}
	for _, r := range refused {
		s.client.refuse(s.k, r.topic, r.turn, r.err)
	}
	return s.retired(e.at)
}

// down tells that the topics which were up no longer are.
func (s *session) down(err error) {
	if topics := s.outbox.up(); len(topics) > 0 {
		s.client.handler.Down(topics, err)
	}
}
