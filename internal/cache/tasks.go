package cache

import (
	"context"
	"sync"
)

// tasks owns the goroutines of the cache. close cancels their context and waits for them.
type tasks struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// mu guards closed, and prevents start from running a goroutine after close has begun to wait.
	mu     sync.Mutex
	closed bool
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// start runs f in a goroutine. After a call of close, start does nothing and returns false.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(f)
	return true
}

func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.wg.Wait()
}
