package app

import (
	"log/slog"
	"sync"
	"time"

	"oddsgraph/internal/config"
)

const (
	// clockTolerance is the difference from which on a clock counts as wrong.
	clockTolerance = 2 * time.Second
	// clockChecks is the number of measurements in a row that must agree that a clock has become wrong or right. A venue may have many
	// servers.
	clockChecks = 3
)

// The clocks that clocks compares with the clock of this host.
const (
	clockVenue = "venue"
	clockRedis = "redis"
)

// clocks compares the clock of this host with other clocks. It is safe for concurrent use.
type clocks struct {
	log *slog.Logger

	mu     sync.Mutex
	clocks map[string]*otherClock
}

// otherClock is what clocks knows of one clock.
type otherClock struct {
	// offset is the least time by which the clock is ahead of this host's clock, according to the last measurement. It is negative if
	// the clock is behind.
	offset time.Duration
	wrong  bool
	// against is the number of measurements in a row that contradict wrong.
	against int
}

func comparedClocks(cfg *config.Config) []string {
	if cfg.Shared.URL == "" {
		return []string{clockVenue}
	}
	return []string{clockVenue, clockRedis}
}

func newClocks(log *slog.Logger, names ...string) *clocks {
	c := &clocks{log: log, clocks: map[string]*otherClock{}}
	for _, name := range names {
		c.clocks[name] = &otherClock{}
	}
	return c
}

// measured records that a clock showed a time from earliest to latest at some moment from sent to received. A clock that becomes
// wrong or right again causes a line in the log.
func (c *clocks) measured(name string, sent, received, earliest, latest time.Time) {
	offset := max(earliest.Sub(received), 0) + min(latest.Sub(sent), 0)
	wrong := offset.Abs() > clockTolerance
	c.mu.Lock()
	defer c.mu.Unlock()
	clock := c.clocks[name]
	clock.offset = offset
	if wrong == clock.wrong {
		clock.against = 0
		return
	}
	if clock.against++; clock.against < clockChecks {
		return
	}
	clock.wrong, clock.against = wrong, 0
	if wrong {
		c.log.Warn("the clock of this host or the other clock is wrong", "other", name, "other_ahead", offset.Round(time.Millisecond))
	} else {
		c.log.Info("the clocks agree again", "other", name)
	}
}

// offsets calls sample with the offset of each clock in seconds, and its name.
func (c *clocks) offsets(sample func(float64, ...string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, clock := range c.clocks {
		sample(clock.offset.Seconds(), name)
	}
}
