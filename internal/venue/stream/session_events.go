package stream

import "time"

// handle handles the events of one frame, or the events that Maintainer.Maintain has emitted in one call.
func (s *session) handle(events []Event) error {
	for i := range events {
		e := &events[i]
		if e.maintained {
			s.acknowledge(e)
			s.handleState(e)
			continue
		}
		s.lastFrame = e.At
		if e.Kind == EventGarbage {
			if s.garbageFrames++; s.garbageFrames >= maxGarbage {
				return errGarbage
			}
			continue
		}
		s.garbageFrames = 0
		s.client.count.last.Store(e.At.UnixNano())
		s.pongBy = time.Time{} // any frame but garbage counts as a response, because some venues do not respond to pings
		var err error
		switch e.Kind {
		case EventHello:
			err = s.handleHello(e)
		case EventAck:
			s.acknowledge(e)
			if s.phase == phaseAuth && e.Rid != "" && e.Rid == s.authRid {
				err = s.afterAuth(e.At)
			}
		case EventError:
			err = s.handleError(e)
		case EventHeartbeat:
			s.handleHeartbeat(e)
		case EventMessage, EventBad:
			s.handleState(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acknowledge passes the confirmed topics of an EventAck to the Handler. It ignores all other kinds.
func (s *session) acknowledge(e *Event) {
	if e.Kind != EventAck {
		return
	}
	if topics := s.queue.acknowledge(e); len(topics) > 0 {
		s.client.handler.Acknowledged(topics)
	}
}

// handleState passes a message to the Handler, or queues a resync if the message is unusable. It drops messages of topics that are
// not subscribed. It ignores all kinds except EventMessage and EventBad.
func (s *session) handleState(e *Event) {
	switch {
	case e.Kind == EventBad:
		s.queue.handleBadFrame(e.Topic, e.At)
	case e.Kind == EventMessage && s.queue.accept(e.Message):
		s.client.handler.Message(e.Message)
	}
}

// handleHello applies the heartbeat interval and the limits of a hello, even if the hello arrives after helloWithin. But the limit
// of topics has no effect if the hello arrives in phaseOpen.
func (s *session) handleHello(e *Event) error {
	s.limits = e.Hello
	s.setSilence(e.Hello.Heartbeat)
	if s.phase == phaseHello {
		return s.afterHello(e.At)
	}
	s.queue.setLimits(s.limits)
	return nil
}

// handleHeartbeat passes the sequence numbers of the subscribed topics to the Handler.
func (s *session) handleHeartbeat(e *Event) {
	for t := range e.Seqs {
		if !s.queue.isSubscribed(t) {
			delete(e.Seqs, t)
		}
	}
	if len(e.Seqs) > 0 {
		s.client.handler.Heartbeat(e.Epoch, e.Seqs)
	}
}

// handleError handles an error frame. If the venue rejects the authentication, handleError refuses all topics of the connection. If
// the venue postpones the authentication, handleError returns errLimited.
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

// reportDown calls Handler.Down for all topics that are up.
func (s *session) reportDown(err error) {
	if topics := s.queue.upTopics(); len(topics) > 0 {
		s.client.handler.Down(topics, err)
	}
}
