package main

import (
	"context"
	"errors"
	"time"

	"oddsgraph/bench/probe"
)

// measure puts a workload on a server. It discards the results of a warm-up run and measures a second run of duration d.
func (l *lab) measure(ctx context.Context, s *server, w int, d time.Duration) (c cell, err error) {
	connections, err := l.dial(ctx, s)
	if err != nil {
		return c, err
	}
	defer closeAll(connections)
	t := task{requests: l.workloads[w].requests, answers: l.answers[s][w], duration: d / 5, every: l.every}
	var m *mover
	stopMoving := func() error { return nil }
	if l.moving {
		if m, err = l.venue.newMover(ctx, l.process.address, l.listing, l.workloads[w].tokens, l.patience); err != nil {
			return c, err
		}
		stopMoving = m.start(ctx)
		defer func() { err = errors.Join(err, stopMoving()) }()
	}
	judged := m != nil && s.name != limitServer
	if judged {
		t.answers, t.sample = nil, m.judge
		err = m.settle(ctx, connections, t)
	} else {
		_, err = run(ctx, connections, t)
	}
	if err != nil {
		return c, err
	}
	t.duration = d
	if c, err = l.count(ctx, s, connections, t); err != nil || !judged {
		return c, err
	}
	if err := stopMoving(); err != nil {
		return c, err
	}
	if err := l.awaitAgreement(ctx, connections[0], l.workloads[w].requests[0]); err != nil {
		return c, err
	}
	c.values[behind] = float64(m.begin(false))
	return c, nil
}

// count runs a task and returns the resources that the server used for it. It reads the metrics before the first and after the last
// reading of the usage, so that the measured usage does not include the work for the metrics.
func (l *lab) count(ctx context.Context, s *server, connections []*connection, t task) (c cell, err error) {
	viewBefore, err := l.look(ctx, s)
	if err != nil {
		return c, err
	}
	before, err := s.usage(ctx)
	if err != nil {
		return c, err
	}
	clientTime := probe.Read().CPU
	load, err := run(ctx, connections, t)
	if err != nil {
		return c, err
	}
	clientTime = probe.Read().CPU - clientTime
	after, err := s.usage(ctx)
	if err != nil {
		return c, err
	}
	viewAfter, err := l.look(ctx, s)
	if err != nil {
		return c, err
	}
	n := float64(len(load.latencies))
	return cell{
		queries: len(load.latencies),
		values: [columns]float64{
			perSecond: n / load.elapsed.Seconds(),
			cpu:       float64(after.CPU-before.CPU) / n,
			allocs:    float64(after.Allocs-before.Allocs) / n,
			heapBytes: float64(after.Bytes-before.Bytes) / n,
			p50:       float64(load.percentile(.5)),
			p99:       float64(load.percentile(.99)),
			upstream:  float64(viewAfter.calls-viewBefore.calls) / n,
			resident:  float64(s.memory()),
			clientCPU: float64(clientTime) / n,
			hits:      viewAfter.counters.hitShare(viewBefore.counters),
			executed:  viewAfter.counters.executedOperations(viewBefore.counters) / n,
		},
	}, nil
}

// settle puts a load on a server until the server keeps up with the venue, or until maxSettling has passed. Afterwards the mover
// accepts no more wrong or old responses.
func (m *mover) settle(ctx context.Context, connections []*connection, t task) error {
	t.duration = settleRun
	for deadline := time.Now().Add(maxSettling); ; {
		m.begin(true)
		if _, err := run(ctx, connections, t); err != nil {
			return err
		}
		if m.begin(false) <= maxLag || time.Now().After(deadline) {
			return nil
		}
	}
}

// awaitAgreement waits until a server's response agrees with the venue, for at most five seconds. The prices of the venue must have
// stopped moving.
func (l *lab) awaitAgreement(ctx context.Context, c *connection, r request) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		answer, err := c.ask(r.wire)
		if err != nil {
			return err
		}
		if err = l.venue.check(ctx, r.question, answer); err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *lab) look(ctx context.Context, s *server) (v view, err error) {
	var errs [2]error
	v.calls, errs[0] = l.venue.calls(ctx)
	v.counters, errs[1] = s.counters(ctx)
	return v, errors.Join(errs[:]...)
}
