package follow

import (
	"context"
	"errors"
	"time"
)

// statusInterval is the time between two calls of the function status of StreamStatus.
const statusInterval = 250 * time.Millisecond

// StreamStatus sends the result of the function status at once. It then calls status every statusInterval and sends each result
// that differs from the last sent result according to the function same. status must not wait.
func StreamStatus[T any](ctx context.Context, s Source, status func() T, same func(a, b *T) bool) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		out := &publisher[T]{group: s.Group, yield: yield}
		if err := followStatus(ctx, out, status, same); err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Event[T]{}, err)
		}
	}
}

func followStatus[T any](ctx context.Context, out *publisher[T], status func() T, same func(a, b *T) bool) error {
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	var waiting <-chan struct{}
	if out.group != nil {
		waiting = out.group.Waiting()
	}
	last := status()
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
		if now := status(); !same(&last, &now) {
			last = now
			if err := out.send(Changed, "", Replace, last); err != nil {
				return err
			}
		}
	}
}
