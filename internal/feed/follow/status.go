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
	return func(yield func(Event[T], error) bool) {
		out := &publisher[T]{group: s.Group, yield: yield}
		if err := followStatus(ctx, out, read, equal); err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Event[T]{}, err)
		}
	}
}

func followStatus[T any](ctx context.Context, out *publisher[T], read func() T, equal func(a, b *T) bool) error {
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	var waiting <-chan struct{}
	if out.group != nil {
		waiting = out.group.Waiting()
	}
	last := read()
	if err := out.send(Changed, "", Replace, last); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-waiting:
			if err := serveJoiners(out.group, out, func(reason Reason) error { return out.send(reason, "", Replace, last) }); err != nil {
				return err
			}
		}
		if now := read(); !equal(&last, &now) {
			last = now
			if err := out.send(Changed, "", Replace, last); err != nil {
				return err
			}
		}
	}
}
