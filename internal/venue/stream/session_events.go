package stream

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

func (s *session) read(ctx context.Context) {
	for {
		frame, err := s.socket.Read(ctx)
		if err != nil {
			s.decoding.Lock()
			s.readErr, s.ended = err, true
			close(s.events)
			s.decoding.Unlock()
			return
		}
		decode := func(now time.Time) []Event {
			if events := s.codec.Decode(frame, now); len(events) > 0 {
				return events
			}
			return []Event{{Kind: EventLife}}
		}
		if !s.deliver(ctx, decode) {
			return
		}
	}
}

// deliver passes the events of decode to session.loop. It returns false if the session has ended.
func (s *session) deliver(ctx context.Context, decode func(now time.Time) []Event) bool {
	s.decoding.Lock()
	defer s.decoding.Unlock()
	if s.ended {
		return false
	}
	now := time.Now()
	events := decode(now)
	for i := range events {
		events[i].At = now
	}
	select {
	case s.events <- events:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *session) maintain(ctx context.Context, m Maintainer) {
	err := m.Maintain(ctx, func(produce func(now time.Time) []Event) {
		s.deliver(ctx, func(now time.Time) []Event {
			events := produce(now)
			for i := range events {
				events[i].maintained = true
			}
			return events
		})
	})
	if err != nil {
		s.maintained <- err
	}
}

// handle handles the events of one frame, or the events that Maintainer.Maintain has emitted in one call. It drops messages of topics
// that are not subscribed.
func (s *session) handle(events []Event) error {
	for i := range events {
		e := &events[i]
		if e.Kind == EventGarbage {
			s.lastFrame = e.At
			if s.garbageFrames++; s.garbageFrames >= maxGarbage {
				return errGarbage
			}
			continue
		}
		if !e.maintained {
			s.lastFrame, s.garbageFrames = e.At, 0
			s.client.count.last.Store(e.At.UnixNano())
			s.pongBy = time.Time{} // any frame but garbage counts as a response, because some venues do not respond to pings
		}
		var err error
		switch e.Kind {
		case EventHello:
			err = s.handleHello(e)
		case EventAck:
			if topics := s.queue.acknowledge(e); len(topics) > 0 {
				s.client.handler.Acknowledged(market.QualifyAll(s.client.cfg.Venue, topics))
			}
			if s.phase == phaseAuth && e.Rid != "" && e.Rid == s.authRid {
				err = s.afterAuth(e.At)
			}
		case EventError:
			err = s.handleError(e)
		case EventHeartbeat:
			s.handleHeartbeat(e)
		case EventBad:
			s.queue.handleBadFrame(e.Topic, e.At)
		case EventMessage:
			if s.queue.accept(e.Message) {
				s.client.handler.Message(market.QualifyAll(s.client.cfg.Venue, e.Message))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handleHello applies a hello, even one after helloWithin. Its limit of topics has no effect in phaseOpen.
func (s *session) handleHello(e *Event) error {
	s.limits = e.Hello
	s.setSilence(e.Hello.Heartbeat)
	if s.phase == phaseHello {
		return s.afterHello(e.At)
	}
	s.queue.setLimits(s.limits)
	return nil
}

func (s *session) handleHeartbeat(e *Event) {
	seqs := make(map[messages.Topic]uint64, len(e.Seqs))
	for t, seq := range e.Seqs {
		if s.queue.isSubscribed(t) {
			seqs[market.QualifyAll(s.client.cfg.Venue, t)] = seq
		}
	}
	if len(seqs) > 0 {
		s.client.handler.Heartbeat(e.Epoch, seqs)
	}
}

// handleError handles an error frame. A rejected authentication refuses all topics of the connection, a postponed one is errLimited.
func (s *session) handleError(e *Event) error {
	err := meaningOf(e.Code)
	if e.Rid != "" && e.Rid == s.authRid || e.Rid == "" && s.k.isUser() && err == errUnauthenticated {
		if err == errLater {
			return errLimited
		}
		if err != errForbidden {
			err = errUnauthenticated
		}
		s.client.refuseAll(s.k, err)
		s.queue.clear()
		return s.checkIdle(e.At)
	}
	s.queue.reject(e, err)
	return s.checkIdle(e.At)
}

func (s *session) reportDown(err error) {
	if topics := s.queue.upTopics(); len(topics) > 0 {
		s.client.handler.Down(market.QualifyAll(s.client.cfg.Venue, topics), err)
	}
}
