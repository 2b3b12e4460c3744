package relay_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"oddsgraph/internal/fleet/relay"
)

var errAway = errors.New("the server is away")

// server replaces Redis in a test. All replicas of the test share one server.
type server struct {
	mu     sync.Mutex
	away   bool
	own    map[int]lease
	fences map[int]uint64
	want   map[int]map[string]time.Time
	subs   map[*port]chan string
	// lose reports whether to lose a text on its way to one replica. If lose is nil, no text is lost.
	lose func(text string) bool
	lost int
}

type lease struct {
	replica string
	until   time.Time
}

func newServer() *server {
	return &server{own: map[int]lease{}, fences: map[int]uint64{}, want: map[int]map[string]time.Time{}, subs: map[*port]chan string{}}
}

// port is the Bus of one replica.
type port struct {
	*server
	// If dead is true, all calls fail. If stuck is true, calls fail, and published texts are kept until release is called. If deaf is
	// true, the replica receives nothing. If unleased is true, Lease fails.
	dead, stuck, deaf, unleased bool
	kept                        []string
	// If blocked is not nil, Publish waits until blocked is closed, as if the process were suspended. waited is the number of texts
	// that waited in Publish.
	blocked  chan struct{}
	waited   int
	receives int
}

func (p *port) unusable() bool { return p.away || p.dead || p.stuck }

func (p *port) Lease(_ context.Context, replica string, shards map[int]uint64) (map[int]uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unusable() || p.unleased {
		return nil, errAway
	}
	granted, now := map[int]uint64{}, time.Now()
	for shard, seen := range shards {
		l := p.own[shard]
		free := !now.Before(l.until)
		if !free && l.replica != replica {
			continue
		}
		if free {
			p.fences[shard] = max(p.fences[shard], seen) + 1
		}
		p.own[shard] = lease{replica, now.Add(relay.LeaseFor)}
		granted[shard] = p.fences[shard]
	}
	return granted, nil
}

func (p *port) Release(_ context.Context, replica string, shards []int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unusable() {
		return errAway
	}
	for _, shard := range shards {
		if p.own[shard].replica == replica {
			delete(p.own, shard)
		}
	}
	return nil
}

func (p *port) Want(_ context.Context, members map[int][]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unusable() {
		return errAway
	}
	for shard, topics := range members {
		if p.want[shard] == nil {
			p.want[shard] = map[string]time.Time{}
		}
		for _, t := range topics {
			p.want[shard][t] = time.Now().Add(relay.WantFor)
		}
	}
	return nil
}

func (p *port) Wanted(_ context.Context, shards []int) (members []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unusable() {
		return nil, errAway
	}
	for _, shard := range shards {
		for t, until := range p.want[shard] {
			if time.Now().Before(until) {
				members = append(members, t)
			}
		}
	}
	return members, nil
}

func (p *port) Publish(_ context.Context, texts []string) error {
	p.mu.Lock()
	if blocked := p.blocked; blocked != nil {
		p.mu.Unlock()
		<-blocked
		p.mu.Lock()
		p.waited += len(texts)
	}
	defer p.mu.Unlock()
	if p.stuck {
		p.kept = append(p.kept, texts...)
		return nil
	}
	if p.unusable() {
		return errAway
	}
	p.spread(texts)
	return nil
}

// spread sends texts to all replicas. The calling function holds the lock.
func (s *server) spread(texts []string) {
	for p, sub := range s.subs {
		for _, text := range texts {
			if p.deaf || p.dead || s.lose != nil && s.lose(text) {
				s.lost++
				continue
			}
			sub <- text
		}
	}
}

func (p *port) Receive(ctx context.Context, handle func(string)) error {
	p.mu.Lock()
	p.receives++
	if p.unusable() {
		p.mu.Unlock()
		return errAway
	}
	p.deaf = false
	sub := make(chan string, 1_000_000)
	p.subs[p] = sub
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subs, p)
	}()
	for {
		select {
		case text, ok := <-sub:
			if !ok {
				return errAway
			}
			handle(text)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// set runs the function change while the server is locked.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// restart makes the server unreachable, deletes its state, and ends its connections.
func (s *server) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
	s.own, s.fences, s.want = map[int]lease{}, map[int]uint64{}, map[int]map[string]time.Time{}
	for p, sub := range s.subs {
		close(sub)
		delete(s.subs, p)
	}
}

// release sends the texts that a stuck replica has published, even if its lease has ended.
func (p *port) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = false
	p.spread(p.kept)
	p.kept = nil
}
