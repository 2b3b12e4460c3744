package e2e

import (
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// relayMetrics checks the metrics oddsgraph_relay_* of two replicas that share a stream, and marks these metrics in m as checked.
func relayMetrics(t *testing.T, m *scraped) {
	t.Helper()
	server := tool.StartRedis(t)
	venue := newSlowVenue(t)
	replica := func() *service {
		s, _ := startStoppable(t, "--venue-url="+venue.URL, "--venue-public-per-minute=0", "--cache-price-fresh=1ms", "--shared-url="+server.URL(),
			"--stream-url=ws"+venue.URL[len("http"):]+demo.StreamPath, "--shared-timeout=250ms", "--shared-replicas=2", "--shared-stream")
		s.venue = venue.demo
		return s
	}
	a, b := replica(), replica()
	ids := a.openTokens(2)
	read := func(s *service, id string) { // the service opens the topic of a price that is queried often
		s.query(t, `query($t: [String!]!) { tokenPrices(tokenIds: $t) { price } }`, vars{"t": []string{id}}, anonymous)
	}
	sum := func(name string) float64 { return a.scrape(t).samples[name] + b.scrape(t).samples[name] }
	eventually(t, "the replicas together own two shards and two topics", func() bool {
		read(a, ids[0])
		read(b, ids[1])
		return sum("oddsgraph_relay_shards_owned") == 2 && sum("oddsgraph_relay_topics") == 2
	})
	if n := sum("oddsgraph_relay_takeovers_total"); n < 2 {
		t.Errorf("the replicas took over %v shards, want 2 or more", n)
	}
	s := a.scrape(t)
	s.want("oddsgraph_relay_alone", 0)
	s.wantBetween("oddsgraph_relay_fenced_frames_total", 0, 1e6)
	s.wantBetween("oddsgraph_relay_lost_frames_total", 0, 1e6)
	s.wantBetween("oddsgraph_relay_reconnects_total", 0, 1e6)
	for _, family := range []string{"shards_owned", "topics", "takeovers_total"} {
		s.check("oddsgraph_relay_" + family)
	}
	m.addChecked(s, "oddsgraph_relay_")
}
