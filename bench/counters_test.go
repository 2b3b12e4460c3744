package main

import (
	"bufio"
	"strings"
	"testing"
)

func TestCounters(t *testing.T) {
	read := func(text string) counters {
		c, err := readCounters(bufio.NewScanner(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read(`# HELP oddsgraph_operations_total GraphQL operations, by type and outcome.
oddsgraph_operations_total{outcome="ok",type="query"} 3
oddsgraph_response_cache_requests_total{verdict="hit"} 10
`)
	after := read(`oddsgraph_operations_total{outcome="ok",type="query"} 5
oddsgraph_operations_total{outcome="error",type="query"} 1e+00
oddsgraph_operations_total_of_something_else 100
oddsgraph_response_cache_requests_total{verdict="hit"} 40
oddsgraph_response_cache_requests_total{verdict="miss"} 10
`)
	if got := after.executedOperations(before); got != 10 {
		t.Errorf("got %v executed operations, want 10", got)
	}
	without := read(`oddsgraph_operations_total{outcome="ok",type="query"} 8`)
	if got := without.executedOperations(nil); got != 8 {
		t.Errorf("got %v executed operations, want 8", got)
	}
	if got := after.hitShare(before); got != .75 {
		t.Errorf("got a share of %v hits, want 0.75", got)
	}
	if got := counters(nil).hitShare(nil) + counters(nil).executedOperations(nil); got != 0 {
		t.Errorf("without counters: got %v, want 0", got)
	}
}
