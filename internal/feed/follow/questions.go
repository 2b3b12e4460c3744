package follow

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/request"
)

// lookInterval is the maximum time between two looks at a question whose data are current.
const lookInterval = 500 * time.Millisecond

// lookBackoff is the delay after looks at a question whose data are not current, because each of them may call the venues.
var lookBackoff = market.Backoff{Min: 500 * time.Millisecond, Max: pollInterval}

// Question follows what look returns for a question. It looks after each change of a watched topic, but at most once in every, and at
// least once in lookInterval. After a look that is not current, it waits for lookBackoff.
//
// look reads the question as a query does, and calls watch with each topic to follow. The topics of the tokens' books are watched before
// the first look. current reports whether all values are fresh and all books come from the venue's stream. An error ends the stream.
// reason returns the reason of an event with the state now, or "" if no event is needed. last is the state in the last event, or nil.
func Question[T any](ctx context.Context, s Source, tokenIDs []string, every time.Duration,
	look func(ctx context.Context, watch func(messages.Channel, string)) (now *T, current bool, err error), reason func(last, now *T) Reason) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		reader := s.newReader(request.From(ctx).Caller)
		defer reader.Close()
		watched := make(map[messages.Topic]bool)
		watch := func(c messages.Channel, id string) {
			if t := (messages.Topic{Channel: c, ID: id}); !watched[t] {
				watched[t] = true
				_, _ = reader.Watch(t, nil) // without a watch, look reads over REST
			}
		}
		for _, id := range tokenIDs {
			watch(messages.ChannelOrderbook, id)
		}
		within, failures := s.Timeout*3/4, 0
		at := time.Now().Add(min(streamHeadStart, s.Timeout/4))
		polled(ctx, s, every, func() (*T, error) {
			changes := reader.Take()
			for _, w := range changes {
				_, _, _ = w.Take()
			}
			if time.Now().Before(at) && (failures > 0 || len(changes) == 0) {
				return nil, nil
			}
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			now, current, err := look(ctx, watch)
			if within, at = pollInterval, time.Now().Add(lookInterval); current {
				failures = 0
			} else {
				failures++
				at = time.Now().Add(lookBackoff.Wait(failures, 1))
			}
			return now, err
		}, reason)(yield)
	}
}
