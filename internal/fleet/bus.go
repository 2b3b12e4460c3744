package fleet

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"oddsgraph/internal/fleet/relay"
)

//go:embed lease.lua
var leaseText string

//go:embed release.lua
var releaseText string

//go:embed want.lua
var wantText string

//go:embed wanted.lua
var wantedText string

var (
	leaseScript, releaseScript = rueidis.NewLuaScript(leaseText), rueidis.NewLuaScript(releaseText)
	wantScript, wantedScript   = rueidis.NewLuaScript(wantText), rueidis.NewLuaScript(wantedText)
)

const (
	// connectTimeout bounds the time to open the connection of a Bus.
	connectTimeout = 3 * time.Second
	// A call of a Bus takes at most busTimeout, or Config.Timeout if that is longer. No client's request waits for such a call.
	// busTimeout must be short enough to renew a lease in time.
	busTimeout = 250 * time.Millisecond
)

var errNoBus = errors.New("there is no connection to Redis for the stream")

// Bus implements relay.Bus with the pub/sub and the scripts of Redis. It has its own connection and ignores the circuit breaker,
// because an open circuit would interrupt the stream for too long. It is safe for concurrent use, but only one Receive may run at a
// time.
type Bus struct {
	f      *Fleet
	client atomic.Pointer[rueidis.Client]
}

var _ relay.Bus = (*Bus)(nil)

// Bus returns the Bus for this replica's relay. Receive opens the connection of the Bus.
func (f *Fleet) Bus() *Bus { return &Bus{f: f} }

// Replica returns the random name of this process.
func (f *Fleet) Replica() string { return f.replica }

// Receive implements relay.Bus.
func (b *Bus) Receive(ctx context.Context, handle func(text string)) error {
	client, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	b.client.Store(&client)
	defer b.client.Store(nil)
	return client.Receive(ctx, client.B().Subscribe().Channel(b.channel()).Build(), func(m rueidis.PubSubMessage) { handle(m.Message) })
}

// channel returns the name of the pub/sub channel. Replicas of different versions use different channels.
func (b *Bus) channel() string { return b.f.prefix + "relay:" + b.f.cfg.Version }

// connect opens a client. rueidis.NewClient takes no context, so connect calls it in a separate goroutine.
func (b *Bus) connect(ctx context.Context) (rueidis.Client, error) {
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	type opening struct {
		client rueidis.Client
		err    error
	}
	opened, abandoned := make(chan opening), make(chan struct{})
	defer close(abandoned)
	began := time.Now()
	if !b.f.start(func() {
		client, err := rueidis.NewClient(b.f.option)
		select {
		case opened <- opening{client, err}:
		case <-abandoned:
			if client != nil {
				client.Close()
			}
		}
	}) {
		return nil, errClosed
	}
	select {
	case r := <-opened:
		b.f.observe(commandConnect, result(ctx, r.err), time.Since(began))
		if r.err != nil && r.client != nil {
			r.client.Close()
		}
		return r.client, r.err
	case <-limited.Done():
		b.f.observe(commandConnect, result(ctx, limited.Err()), time.Since(began))
		return nil, limited.Err()
	}
}

// do calls fn with the client that Receive has opened. While there is no client, do returns errNoBus.
func do[T any](ctx context.Context, b *Bus, command string, fn func(context.Context, rueidis.Client) (T, error)) (value T, err error) {
	client := b.client.Load()
	if client == nil {
		return value, errNoBus
	}
	return callWithTimeout(b.f, ctx, max(b.f.cfg.Timeout, busTimeout), command, *client, fn)
}

func (b *Bus) key(name string, shard int) string {
	return b.channel() + ":" + name + ":" + strconv.Itoa(shard)
}

// Lease implements relay.Bus.
func (b *Bus) Lease(ctx context.Context, replica string, shards map[int]uint64) (map[int]uint64, error) {
	var order []int
	var keys []string
	args := []string{replica, strconv.FormatInt(relay.LeaseFor.Milliseconds(), 10)}
	for shard, seen := range shards {
		order = append(order, shard)
		keys = append(keys, b.key("own", shard), b.key("fence", shard))
		args = append(args, strconv.FormatUint(seen, 10))
	}
	answer, err := do(ctx, b, commandLease, func(ctx context.Context, client rueidis.Client) ([]string, error) {
		return leaseScript.Exec(ctx, client, keys, args).AsStrSlice()
	})
	if err != nil {
		return nil, err
	}
	fences := make(map[int]uint64, len(answer))
	for i, text := range answer {
		if fence, err := strconv.ParseUint(text, 10, 64); err == nil && i < len(order) {
			fences[order[i]] = fence
		}
	}
	return fences, nil
}

// Release implements relay.Bus.
func (b *Bus) Release(ctx context.Context, replica string, shards []int) error {
	_, err := do(ctx, b, commandLease, func(ctx context.Context, client rueidis.Client) (struct{}, error) {
		return struct{}{}, releaseScript.Exec(ctx, client, b.keys("own", shards), []string{replica}).Error()
	})
	return err
}

func (b *Bus) keys(name string, shards []int) []string {
	keys := make([]string, len(shards))
	for i, shard := range shards {
		keys[i] = b.key(name, shard)
	}
	return keys
}

// Want implements relay.Bus.
func (b *Bus) Want(ctx context.Context, members map[int][]string) error {
	var keys []string
	args := []string{strconv.FormatInt(relay.WantFor.Milliseconds(), 10)}
	for shard, topics := range members {
		keys = append(keys, b.key("want", shard))
		args = append(args, strconv.Itoa(len(topics)))
		args = append(args, topics...)
	}
	_, err := do(ctx, b, commandWant, func(ctx context.Context, client rueidis.Client) (struct{}, error) {
		return struct{}{}, wantScript.Exec(ctx, client, keys, args).Error()
	})
	return err
}

// Wanted implements relay.Bus.
func (b *Bus) Wanted(ctx context.Context, shards []int) ([]string, error) {
	return do(ctx, b, commandWant, func(ctx context.Context, client rueidis.Client) ([]string, error) {
		return wantedScript.Exec(ctx, client, b.keys("want", shards), nil).AsStrSlice()
	})
}

// Publish implements relay.Bus.
func (b *Bus) Publish(ctx context.Context, texts []string) error {
	_, err := do(ctx, b, commandPublish, func(ctx context.Context, client rueidis.Client) (struct{}, error) {
		commands := make(rueidis.Commands, len(texts))
		for i, text := range texts {
			commands[i] = client.B().Publish().Channel(b.channel()).Message(text).Build()
		}
		for _, answer := range client.DoMulti(ctx, commands...) {
			if err := answer.Error(); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}
