package cache

import (
	"fmt"
	"strings"

	"oddsgraph/internal/upstream"
)

// Flush removes all entries of a kind, including absences, and returns the number of removed entries. kind is a value of
// Stats.Kind. If key is not empty, Flush removes only the entries of this key: a token id, the id or slug of a market or event, or
// an account address. Calls in flight still store their results. Flush fails if the kind is unknown. It also fails if key is not
// empty and the kind cannot be flushed by key.
func (c *Cache) Flush(kind, key string) (entries int, err error) {
	k, ok := kindOf(kind)
	switch {
	case !ok:
		kinds := make([]string, upstream.Kinds)
		for i := range kinds {
			kinds[i] = upstream.Kind(i).String()
		}
		return 0, fmt.Errorf("kind is one of %s", strings.Join(kinds, ", "))
	case key != "" && !c.stores[k].keyed():
		return 0, fmt.Errorf("entries of kind %s cannot be flushed by key; flush all of them", kind)
	}
	if c.cfg.Shared != nil && !k.User() {
		c.cfg.Shared.Flush(kind, key)
	}
	return c.stores[k].flush(key), nil
}

// FlushLocal is like Flush, but does not flush the shared cache. It does nothing where Flush would fail.
func (c *Cache) FlushLocal(kind, key string) {
	if k, ok := kindOf(kind); ok && (key == "" || c.stores[k].keyed()) {
		c.stores[k].flush(key)
	}
}

// kindOf returns the kind with a name.
func kindOf(name string) (k upstream.Kind, ok bool) {
	for ; k < upstream.Kinds; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return k, false
}

// keyed reports whether flush can remove the entries of one id.
func (s *store[K, T]) keyed() bool { return !s.unkeyed }

// flush removes the entries of all keys that belong to an id, or all entries if the id is empty. It returns the number of removed
// entries.
func (s *store[K, T]) flush(id string) int {
	belongs := s.kind.forget(id)
	if id == "" {
		belongs = func(K) bool { return true }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries.removeAll(belongs) + s.absent.removeAll(belongs)
}
