package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"oddsgraph/internal/market"
)

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 25 * time.Millisecond

const (
	// tickEvery is the time between two calls of the script tick.lua; see Fleet.tick.
	tickEvery = time.Second
	// probeTimeout bounds the call of tick.lua in a probe. The client may have to connect again, so probeTimeout is longer than
	// DefaultTimeout.
	probeTimeout = 2 * time.Second
	// rebuildAfterProbes is the number of failed probes after which a new client replaces the old one. The old client may keep a dead
	// connection, or a connection to a former primary.
	rebuildAfterProbes = 3
	maxCalls           = 256
)

var probeBackoff = market.Backoff{Min: time.Second, Max: 5 * time.Second}

var (
	errOpen   = errors.New("the circuit to Redis is open")
	errBusy   = errors.New("too many calls to Redis are under way")
	errClosed = errors.New("the fleet is closed")
)

// Config configures a Fleet.
type Config struct {
	// URL is the address of Redis, in the form of the flag --shared-url. It may contain a password, so it is never logged.
	URL string
	// Venue is the URL of the venue. Each venue has its own keys in Redis.
	Venue string
	// Timeout bounds each call to Redis, except probes. If Timeout is 0, Open uses DefaultTimeout.
	Timeout time.Duration
	// CallTimeout is the greatest duration of one call to the venue.
	CallTimeout time.Duration
	// Kinds are the kinds of shared values. Flushes of other kinds do not reach this replica.
	Kinds []string
	// Version is the version of the program. Replicas of different versions share no values.
	Version string
	// Span is how long the venue counts a call against its limit. Use is the time after Fleet.Ask within which a granted call is usually
	// sent. A call whose end is never reported counts for Span, Use and CallTimeout together. If Span is 0, Open uses DefaultSpan. If Use
	// is 0, Open uses DefaultUse.
	Span, Use time.Duration
	// Observe is called after each call to Redis, except for the calls that Close makes. It is also called for calls that were
	// refused before they were sent. The parameter result is one of the constants ResultOK to ResultRefused. Observe may be nil. It
	// must be safe for concurrent use and must not wait.
	Observe func(command, result string, took time.Duration)
	// Measured is called about once a second with the time of the server, and with the times at which this process sent the question
	// and received the answer. It may be nil. It must not wait.
	Measured func(sent, received, server time.Time)
	// Clock is the source of time. If it is nil, Open uses the system clock.
	Clock market.Clock
	// Log is the logger. If it is nil, Open uses slog.Default.
	Log *slog.Logger
}

// Fleet gives this replica access to the data and limits that the replicas share. It is safe for concurrent use. Close ends its
// goroutines.
type Fleet struct {
	cfg    Config
	option rueidis.ClientOption
	prefix string
	// replica is a random name of this process.
	replica string
	clock   market.Clock
	log     *slog.Logger

	ctx         context.Context
	cancel      context.CancelFunc
	running     sync.WaitGroup
	slots       chan struct{}
	client      atomic.Pointer[rueidis.Client]
	circuit     circuit
	serverClock serverClock
	ends        ends
	asks        atomic.Uint64
	counts      counts

	mu     sync.Mutex
	closed bool
	// replicas is the number of replicas that Redis knows.
	replicas int
	// flushes maps each kind of shared value to its last flush by any replica. ticked reports whether the flushes were read from Redis
	// at least once.
	flushes map[string]flush
	ticked  bool
	onFlush func(kind, key string)
	// lastError describes the last failure. hold is the time when the venue accepts calls without credentials again.
	lastError string
	hold      time.Time
}

// Open returns a Fleet. It fails only if the URL is invalid. The Fleet connects, and reconnects, in the background.
func Open(cfg Config) (*Fleet, error) {
	option, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	cfg.Clock = cmp.Or[market.Clock](cfg.Clock, market.SystemClock{})
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.Timeout, cfg.Span, cfg.Use = cmp.Or(cfg.Timeout, DefaultTimeout), cmp.Or(cfg.Span, DefaultSpan), cmp.Or(cfg.Use, DefaultUse)
	f := &Fleet{
		cfg: cfg, option: option, prefix: prefixOf(cfg.Venue), replica: rand.Text()[:12],
		clock: cfg.Clock, log: cfg.Log, slots: make(chan struct{}, maxCalls), flushes: map[string]flush{},
	}
	f.circuit.open, f.circuit.since = true, time.Now()
	f.ends.wake = make(chan struct{}, 1)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.running.Go(f.keepConnected)
	f.running.Go(f.sendEnds)
	return f, nil
}

// prefixOf returns the beginning of the names of all keys for a venue.
func prefixOf(venue string) string {
	hash := sha256.Sum256([]byte(strings.TrimRight(venue, "/")))
	return "og:" + hex.EncodeToString(hash[:8]) + ":"
}

// CheckURL returns an error for an invalid URL. The error does not contain the URL, which may have a password.
func CheckURL(url string) error {
	_, err := parse(url)
	return err
}

func parse(url string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return option, errors.New("not a redis://, rediss:// or unix:// URL with an optional database number")
	}
	option.DisableCache, option.DisableRetry = true, true
	option.ForceSingleClient = option.Sentinel.MasterSet == ""
	// Use one connection, so that Redis gets the commands in order. With AlwaysPipelining, a late response does not close this
	// connection.
	option.AlwaysPipelining, option.PipelineMultiplex = true, -1
	option.Dialer.Timeout, option.ConnWriteTimeout = time.Second, time.Second
	option.ReadBufferEachConn, option.WriteBufferEachConn = 64<<10, 64<<10
	option.ClientSetInfo = rueidis.DisableClientSetInfo
	option.ClientName = cmp.Or(option.ClientName, "oddsgraph")
	// Use the same TLS configuration and dialer for the sentinels as for the primary.
	option.Sentinel.TLSConfig, option.Sentinel.Dialer = option.TLSConfig, option.Dialer
	return option, nil
}

// Close tries to send the waiting notes (see the type note) to Redis, waits for the goroutines and closes the connection.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.running.Wait()
	f.setClient(nil)
}

// start runs fn in a goroutine. Close waits for the goroutine. If the fleet is closed, start returns false and does not run fn.
func (f *Fleet) start(fn func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.running.Go(fn)
	return true
}

// call calls fn with the client and passes the result to the circuit. While the circuit is open, call returns errOpen. It returns
// after Config.Timeout at the latest.
func call[T any](f *Fleet, ctx context.Context, command string, fn func(context.Context, rueidis.Client) (T, error)) (value T, err error) {
	client := f.client.Load()
	if client == nil || !f.circuit.closed() {
		f.observe(command, ResultRefused, 0)
		return value, errOpen
	}
	value, err = callWithTimeout(f, ctx, f.patience(), command, *client, fn)
	switch result(ctx, err) {
	case ResultOK:
		f.circuit.succeed()
	case ResultTimeout, ResultFailed:
		f.setLastError(err)
		if f.circuit.fail() {
			f.counts.opened.Add(1)
			f.log.Warn("Redis does not answer; this replica works on its own", "error", err)
		}
	}
	return value, err
}

// patience returns the timeout of the next call. It is Config.Timeout, halved for each failed call since the last success, but not
// less than DefaultTimeout. So a query that makes several calls does not wait for the whole Config.Timeout each time.
func (f *Fleet) patience() time.Duration {
	return max(f.cfg.Timeout>>f.circuit.failures(), min(f.cfg.Timeout, DefaultTimeout))
}

// callWithTimeout calls fn with a client and returns after timeout at the latest. fn may return long after its context has ended,
// so fn runs in its own goroutine.
func callWithTimeout[T any](f *Fleet, ctx context.Context, timeout time.Duration, command string, client rueidis.Client, fn func(context.Context, rueidis.Client) (T, error)) (value T, err error) {
	began := time.Now()
	defer func() { f.observe(command, result(ctx, err), time.Since(began)) }()
	select {
	case f.slots <- struct{}{}:
	default:
		return value, errBusy
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel() // if the goroutine called cancel, the select below might choose the cancelled context instead of the response
	if !f.start(func() {
		defer func() { <-f.slots }()
		value, err := fn(limited, client)
		answered <- answer{value, err}
	}) {
		<-f.slots
		return value, errClosed
	}
	select {
	case a := <-answered:
		return a.value, a.err
	case <-limited.Done():
		return value, fmt.Errorf("waiting for Redis: %w", context.Cause(limited))
	}
}

// keepConnected connects, ticks while the circuit is closed, and probes while the circuit is open.
func (f *Fleet) keepConnected() {
	failed, known := 0, false
	var told time.Time // time of the last line about Redis
	for wait := time.Duration(0); f.sleep(wait); {
		if f.circuit.closed() {
			told = time.Now()
			_, _ = call(f, f.ctx, commandTick, f.tick)
			wait = tickEvery
			continue
		}
		err := f.probe(failed > 0 && failed%rebuildAfterProbes == 0)
		if err == nil {
			var lost []any
			if _, since := f.circuit.state(); failed > 0 || known {
				lost = []any{"since", since, "lasted", time.Since(since).Round(time.Millisecond)}
			}
			failed, wait, known = 0, tickEvery, true
			f.circuit.close()
			f.wakeEnds()
			f.log.Info("Redis answers; this replica shares the venue's limit and public data", lost...)
			continue
		}
		f.setLastError(err)
		switch failed++; {
		case failed == 1 && !known: // if known is true, call has already logged the loss of the connection
			told = time.Now()
			f.log.Warn("Redis cannot be reached; this replica works on its own", "error", err)
		case time.Since(told) >= time.Minute:
			told = time.Now()
			_, since := f.circuit.state()
			f.log.Warn("Redis still cannot be reached", "error", err, "since", since, "failed", failed)
		}
		wait = probeBackoff.Wait(failed, mathrand.Float64())
	}
}

// probe connects if necessary and makes one tick. If rebuild is true, probe replaces the client.
func (f *Fleet) probe(rebuild bool) error {
	if f.client.Load() == nil || rebuild {
		began := time.Now()
		client, err := rueidis.NewClient(f.option)
		f.observe(commandConnect, result(f.ctx, err), time.Since(began))
		if err != nil {
			if client != nil {
				client.Close()
			}
			return err
		}
		f.setClient(client)
	}
	f.serverClock.reset()
	_, err := callWithTimeout(f, f.ctx, probeTimeout, commandTick, *f.client.Load(), f.tick)
	return err
}

// setClient replaces the client and closes the old one.
func (f *Fleet) setClient(client rueidis.Client) {
	var next *rueidis.Client
	if client != nil {
		next = &client
	}
	if old := f.client.Swap(next); old != nil {
		(*old).Close()
	}
}

// sleep waits for d. It returns false if the fleet is closed.
func (f *Fleet) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return f.ctx.Err() == nil
	case <-f.ctx.Done():
		return false
	}
}
