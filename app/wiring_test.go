package app

import (
	"testing"

	"oddsgraph/internal/config"
)

// TestSpread checks that no connection gets more than 200 topics.
func TestSpread(t *testing.T) {
	for topics, want := range map[int][2]int{1: {1, 1}, 200: {1, 200}, 201: {2, 101}, 2000: {10, 200}, 2100: {11, 191}, 100_000: {500, 200}} {
		if connections, each := spread(topics); connections != want[0] || each != want[1] {
			t.Errorf("%d topics are divided among %d connections of %d topics, want %d connections of %d topics", topics, connections, each, want[0], want[1])
		}
	}
}

// TestCacheRemembersChanges checks that the cache can remember as many changes of markets as the stream has topics.
func TestCacheRemembersChanges(t *testing.T) {
	cfg := config.Default()
	cfg.StreamTopics = 3000
	if got := cacheConfig(&cfg, nil).Changes; got != cfg.StreamTopics {
		t.Errorf("the cache can remember %d changes, want %d, the number of topics", got, cfg.StreamTopics)
	}
}
