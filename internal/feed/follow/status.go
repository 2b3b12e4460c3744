package follow

import (
	"context"
	"time"
)

// statusInterval is the time between two status reads of StreamStatus.
const statusInterval = 250 * time.Millisecond

// StreamStatus calls read and sends the returned status. It then calls read every statusInterval, and sends each status that
// differs from the last sent status. read must not wait.
func StreamStatus[T any](ctx context.Context, s Source, read func() T, equal func(a, b *T) bool) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		out := &publisher[T]{yield: yield}
		tick := time.NewTicker(statusInterval)
		defer tick.Stop()
		var waiting <-chan struct{}
		if s.Group != nil {
			waiting = s.Group.Waiting()
		}
		last := read()
		err := out.send(Changed, "", Replace, last)
		for err == nil { // the only error is errStopped
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-waiting:
				err = serveJoiners(s.Group, out, func(reason Reason) error { return out.send(reason, "", Replace, last) })
			}
			if now := read(); err == nil && !equal(&last, &now) {
				last = now
				err = out.send(Changed, "", Replace, last)
			}
		}
	}
}
