package stream

import (
	"context"
	"time"
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
		if !s.deliver(ctx, func() []Event { return s.codec.Decode(frame, time.Now()) }) {
			return
		}
	}
}

// deliver calls decode and passes the resulting events to session.loop. It returns false if the session has ended.
func (s *session) deliver(ctx context.Context, decode func() []Event) bool {
	s.decoding.Lock()
	defer s.decoding.Unlock()
	if s.ended {
		return false
	}
	select {
	case s.events <- decode():
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *session) maintain(ctx context.Context, m Maintainer) {
	err := m.Maintain(ctx, func(produce func(now time.Time) []Event) {
		s.deliver(ctx, func() []Event {
			events := produce(time.Now())
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
