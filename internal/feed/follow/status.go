package follow

import (
	"context"
	"errors"
	"time"
)

// statusInterval is the time between two status reads of StreamStatus.
const statusInterval = 250 * time.Millisecond

// StreamStatus calls read and sends the returned status. It then calls read every statusInterval, and sends each status that
// differs from the last sent status. read must not wait.
func StreamStatus[T any](ctx context.Context, s Source, read func() T, equal func(a, b *T) bool) Stream[T] {
	return polled(ctx, s, statusInterval, func() (*T, error) { return new(read()), nil }, func(last, now *T) Reason {
		if last != nil && equal(last, now) {
			return ""
		}
		return Changed
	})
}

// polled calls read every interval and sends its value if reason returns one. read returns nil if it has no value, and an error to end
// the stream. reason gets the value of the last event, which is nil at first, and returns "" if no event is needed.
func polled[T any](ctx context.Context, s Source, interval time.Duration, read func() (*T, error), reason func(last, now *T) Reason) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		out := &publisher[T]{yield: yield}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var waiting <-chan struct{}
		if s.Group != nil {
			waiting = s.Group.Waiting()
		}
		var last *T
		for {
			now, err := read()
			if ctx.Err() != nil {
				return
			}
			if err == nil && now != nil {
				if why := reason(last, now); why != "" {
					last, err = now, out.send(why, "", Replace, *now)
				}
			}
			if err == nil {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				case <-waiting:
					err = serveJoiners(s.Group, out, func(why Reason) error {
						if last == nil { // the first event is for all readers
							return nil
						}
						return out.send(why, "", Replace, *last)
					})
				}
			}
			if err != nil {
				if !errors.Is(err, errStopped) {
					yield(Event[T]{}, err)
				}
				return
			}
		}
	}
}
