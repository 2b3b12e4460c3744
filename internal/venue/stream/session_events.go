package stream

import (
	"errors"
	"time"
)

// handle handles the events of one frame. It checks no deadlines.
func (s *session) handle(events []event) error {
	for i := range events {
		e := &events[i]
		s.lastFrame = e.at
		if e.kind == eventGarbage {
			if s.garbageFrames++; s.garbageFrames >= maxGarbage {
				return errGarbage
			}
			continue
		}
		s.garbageFrames = 0
		s.client.count.last.Store(e.at.UnixNano())
		s.pongBy = time.Time{} // any frame shows that the venue is alive; some venues do not answer pings
		var err error
		switch e.kind {
		case eventHello:
			err = s.handleHello(e)
		case eventAck:
			if topics := s.queue.acknowledge(e); len(topics) > 0 {
				s.client.handler.Acknowledged(topics)
			}
			if s.phase == phaseAuth && e.rid != "" && e.rid == s.authRid {
				err = s.afterAuth(e.at)
			}
		case eventError:
			err = s.handleError(e)
		case eventHeartbeat:
			s.handleHeartbeat(e)
		case eventMessage:
			if s.queue.accept(e.message) {
				s.client.handler.Message(e.message)
			}
		case eventBad:
			s.queue.badFrame(e.topic, e.at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handleHello applies the venue's hello. A hello that arrives after helloWithin still changes the heartbeat and the limits.
func (s *session) handleHello(e *event) error {
	s.epoch, s.limits = e.epoch, e.hello
	s.setSilence(e.hello.heartbeat)
	if s.phase == phaseHello {
		return s.afterHello(e.at)
	}
	s.queue.limit(s.limits)
	return nil
}

// handleHeartbeat passes the sequence numbers of this connection's topics to the Handler.
func (s *session) handleHeartbeat(e *event) {
	for t := range e.seqs {
		if !s.queue.carries(t) {
			delete(e.seqs, t)
		}
	}
	if len(e.seqs) > 0 {
		s.client.handler.Heartbeat(e.epoch, e.seqs)
	}
}

// handleError handles an error frame. Only an error about the authentication can end the connection.
func (s *session) handleError(e *event) error {
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
		s.queue.clear()
		return s.checkIdle(e.at)
	}
	down, rejected := s.queue.rejected(e, class)
	if len(down) > 0 {
		s.client.handler.Down(down, errors.New("the venue postponed the subscription"))
	}
	for _, r := range rejected {
		s.client.refuse(s.k, r.topic, r.turn, r.err)
	}
	return s.checkIdle(e.at)
}

// reportDown calls Handler.Down for all topics.
func (s *session) reportDown(err error) {
	if topics := s.queue.upTopics(); len(topics) > 0 {
		s.client.handler.Down(topics, err)
	}
}
