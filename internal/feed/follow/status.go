package follow

import (
	"context"
	"errors"
	"time"
)

// statusEvery is how often a status is looked at.
const statusEvery = 250 * time.Millisecond

// StreamStatus sends what status returns, and again whenever it differs. status must not wait.
func StreamStatus[T any](ctx context.Context, s Source, status func() T, same func(a, b *T) bool) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		out := &outlet[T]{group: s.Group, yield: yield}
		if err := followStatus(ctx, out, status, same); err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Event[T]{}, err)
		}
	}
}

func followStatus[T any](ctx context.Context, out *outlet[T], status func() T, same func(a, b *T) bool) error {
	tick := time.NewTicker(statusEvery)
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
			to, resync, ok := out.group.TakeWaiting()
			if !ok {
				continue
			}
			reason := Initial
			if resync {
				reason = Resync
			}
			out.address(to)
			err := out.send(reason, "", Replace, last)
			out.address(0)
			out.group.Join(to)
			if err != nil {
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
