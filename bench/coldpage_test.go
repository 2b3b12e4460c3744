package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	// pageMarkets is the number of markets of the cold page.
	pageMarkets = 25
	// maxConcurrent is the maximum number of concurrent calls for books. It is also the maximum number of concurrent calls for
	// histories.
	maxConcurrent = 16
)

var coldPage = fmt.Sprintf(`{"query":"{ searchMarkets(filter: { status: OPEN }, sort: VOLUME, first: %d) { nodes { question tokens { outcome price { price } orderbook(depth: 20) { bids { price size } asks { price size } } history { points { timestamp price } } } } } }"}`, pageMarkets)

// BenchmarkColdPage measures a page of 25 markets with the prices, books and price histories of their tokens. Nothing is cached.
// The server makes one call for the page, then one call for each book and each history. The metrics are
//
//	added-ms/op  the time of the query, minus the latencies of the calls that it waits for; the venue's own work is included
//	calls/op     calls to the venue
//
// cpu-ns/op, allocs/op and B/op are the usage of the server's process.
func BenchmarkColdPage(b *testing.B) {
	const latency = 5 * time.Millisecond
	b.Run("latency=5ms/oddsgraph", func(b *testing.B) {
		venue := newWatchedVenue(b, latency)
		program, err := shared.oddsgraph(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		flags := append(slices.Clone(coldFlags), "--log-level=warn", "--venue-public-per-minute=0", "--limit-cost=200000", "--cache-search-fresh=0s", "--cache-search-stale=0s",
			"--cache-history-fresh=0s", "--cache-history-stale=0s", "--venue-url="+venue.url)
		s, err := shared.start(b.Context(), graphServer, program, "--listen", flags...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.stop)
		benchmarkColdPage(b, venue, s, latency)
	})
}

func benchmarkColdPage(b *testing.B, venue *watchedVenue, s *server, latency time.Duration) {
	before, err := s.usage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var added []float64
	calls := 0
	for b.Loop() {
		start := time.Now()
		answer, err := post(b.Context(), s.url()+"/graphql", []byte(coldPage), "")
		elapsed := time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		var data struct {
			SearchMarkets struct {
				Nodes []struct {
					Tokens []struct {
						Orderbook struct{ Bids, Asks []any }
						History   struct{ Points []any }
					}
				}
			}
		}
		if err := readData(answer, &data); err != nil {
			b.Fatal(err)
		}
		if n := len(data.SearchMarkets.Nodes); n != pageMarkets || len(data.SearchMarkets.Nodes[0].Tokens[0].History.Points) == 0 {
			b.Fatalf("the page has %d markets, want %d with price histories: %.500s", n, pageMarkets, answer)
		}
		tokens := 0
		for _, m := range data.SearchMarkets.Nodes {
			tokens += len(m.Tokens)
		}
		// Each round of calls waits for the previous round. There is one round for the page, and one for every 16 tokens.
		rounds := time.Duration(1 + (tokens+maxConcurrent-1)/maxConcurrent)
		added = append(added, float64(elapsed-rounds*latency)/float64(time.Millisecond))
		calls += len(venue.take())
	}
	after, err := s.usage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	n := float64(len(added))
	b.ReportMetric(median(added), "added-ms/op")
	b.ReportMetric(float64(calls)/n, "calls/op")
	b.ReportMetric(float64(after.CPU-before.CPU)/n, "cpu-ns/op")
	b.ReportMetric(float64(after.Allocs-before.Allocs)/n, "allocs/op")
	b.ReportMetric(float64(after.Bytes-before.Bytes)/n, "B/op")
}
