package fleet

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A new measurement of the server's clock replaces the last one if the new round trip is not longer, or if the last measurement is
// at least remeasureAfter old.
const remeasureAfter = 30 * time.Second

// serverClock converts between the clock of Redis and the clock of this process. The error is at most half a round trip.
type serverClock struct {
	mu sync.Mutex
	// offset is the server's time minus the time of this process. took is the round trip of the measurement, and at is the time of the
	// measurement.
	offset, took time.Duration
	at           time.Time
}

// measure computes the offset from a call that returned the server's time. It ignores a measurement that does not replace the last
// one; see remeasureAfter.
func (c *serverClock) measure(sent, received, server time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := received.Sub(sent)
	if !c.at.IsZero() && took > c.took && received.Sub(c.at) < remeasureAfter {
		return
	}
	c.offset, c.took, c.at = server.Sub(sent.Add(took/2)), took, received
}

// reset makes the next measurement replace the last one, because the next response may come from another server. Until then, the
// last measurement stays in use.
func (c *serverClock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

// toServer converts a time of this process to the server's time, in microseconds since 1970.
func (c *serverClock) toServer(ours time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ours.Add(c.offset).UnixMicro()
}

// toOurs converts a time of the server to the time of this process.
func (c *serverClock) toOurs(micros int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.UnixMicro(micros).Add(-c.offset)
}

//go:embed tick.lua
var tickText string

var tickScript = rueidis.NewLuaScript(tickText)

// tick measures the server's clock, registers this replica, and reads the number of replicas and the last flush of each kind of
// shared value.
func (f *Fleet) tick(ctx context.Context, client rueidis.Client) (struct{}, error) {
	sent := f.clock.Now()
	answer, err := tickScript.Exec(ctx, client, []string{f.prefix + "replicas", f.prefix + "flushes"},
		append([]string{f.replica, strconv.FormatInt((5 * tickEvery).Microseconds(), 10), strconv.Itoa(2 * maxFlushKey)}, f.cfg.Kinds...)).AsStrSlice()
	received := f.clock.Now()
	if err != nil {
		return struct{}{}, err
	}
	if len(answer) != 2+len(f.cfg.Kinds) {
		return struct{}{}, errors.New("unexpected answer of the tick script")
	}
	now, err := strconv.ParseInt(answer[0], 10, 64)
	if err != nil {
		return struct{}{}, errors.New("unexpected time in the answer of the tick script")
	}
	f.serverClock.measure(sent, received, time.UnixMicro(now))
	if f.cfg.Measured != nil {
		f.cfg.Measured(sent, received, time.UnixMicro(now))
	}
	replicas, _ := strconv.Atoi(answer[1])
	f.mu.Lock()
	f.replicas = replicas
	f.mu.Unlock()
	flushes := map[string]string{}
	for i, kind := range f.cfg.Kinds {
		flushes[kind] = answer[2+i]
	}
	f.applyFlushes(flushes, now)
	return struct{}{}, nil
}
