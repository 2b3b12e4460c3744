package main

import (
	"fmt"
	"testing"
	"time"
)

// The demo account with 2,000 positions.
const (
	richAddress     = "0x3333333333333333333333333333333333333333"
	richCredentials = `{"apiKey":"demo-2000","secret":"demo","passphrase":"demo"}`
)

const growthQuery = `fragment Page on PositionConnection {
  nodes { marketId outcome size avgPrice market { question slug } token { tokenId outcome price { price } } }
  pageInfo { endCursor }
}
query Portfolio($address: Address!, $first: Int!, $after: String, $more: Boolean!) {
  user(address: $address) {
    positions(first: $first) { ...Page }
    more: positions(first: $first, after: $after) @include(if: $more) { ...Page }
  }
}`

// BenchmarkPositions queries portfolios of growing size. All data are cached. Its metrics are
//
//	cpu-ns/item, allocs/item  CPU time and allocations of the server's process for one position
//	ns/item                   time of a query, divided by the number of its positions
//	allocs/op                 allocations of the server's process for one query
//
// cpu-ns/item and allocs/item should not grow with the number of positions.
func BenchmarkPositions(b *testing.B) {
	program, err := shared.oddsgraph(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	process, err := startVenue(b.Context(), shared, program, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(process.stop)
	noResponseCache, err := withoutResponseCache(b.Context(), program)
	if err != nil {
		b.Fatal(err)
	}
	flags := append(append(append([]string{"--venue-url=" + process.url()}, unlimited...), warm...), noResponseCache...)
	s, err := shared.start(b.Context(), graphServer, program, "--listen", flags...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.stop)
	c, err := dial(b.Context(), s.address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.close)
	for _, positions := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("positions=%d", positions), func(b *testing.B) {
			benchmarkPositions(b, s, c, positions)
		})
	}
}

// mostOnPage is the largest page size of positions.
const mostOnPage = 500

func benchmarkPositions(b *testing.B, s *server, c *connection, positions int) {
	type page struct {
		Nodes    []struct{ Market struct{ Question string } }
		PageInfo struct{ EndCursor string }
	}
	var data struct {
		User struct{ Positions, More *page }
	}
	ask := func(variables map[string]any) []byte {
		if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			b.Fatal(err)
		}
		variables["address"] = richAddress
		answer, err := c.ask(newRequest(growthQuery, "Portfolio", variables, question{credentials: encode(richCredentials)}).wire)
		if err == nil {
			err = readData(answer, &data)
		}
		if err != nil {
			b.Fatal(err)
		}
		return answer
	}
	variables := map[string]any{"first": min(positions, mostOnPage), "more": false}
	ask(variables)
	if positions > mostOnPage {
		variables["after"], variables["more"] = data.User.Positions.PageInfo.EndCursor, true
		ask(variables)
	}
	got := len(data.User.Positions.Nodes)
	if data.User.More != nil {
		got += len(data.User.More.Nodes)
	}
	if got != positions {
		b.Fatalf("the responses have %d positions, want %d", got, positions)
	}
	request := newRequest(growthQuery, "Portfolio", variables, question{credentials: encode(richCredentials)}).wire
	before, err := s.usage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.ask(request); err != nil {
			b.Fatal(err)
		}
	}
	after, err := s.usage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	items := float64(b.N) * float64(positions)
	b.ReportMetric(float64(after.CPU-before.CPU)/items, "cpu-ns/item")
	b.ReportMetric(float64(after.Allocs-before.Allocs)/items, "allocs/item")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/items, "ns/item")
	b.ReportMetric(float64(after.Allocs-before.Allocs)/float64(b.N), "allocs/op")
}
