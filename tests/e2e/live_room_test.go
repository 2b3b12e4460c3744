package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// TestStreamTopics checks that one client with more tokens than --stream-topics gets exactly this number of topics. The service
// must use as few connections as possible, with at most 200 topics each.
func TestStreamTopics(t *testing.T) {
	t.Parallel()
	const tokenCount = 2400
	for _, test := range []struct{ topics, connections int }{{150, 1}, {450, 3}, {2200, 11}} {
		t.Run(fmt.Sprint(test.topics), func(t *testing.T) {
			t.Parallel()
			s := startLive(t, "--demo-markets=1400", fmt.Sprintf("--stream-topics=%d", test.topics))
			s.waitForStream(t)
			var ids []string
			for _, token := range s.venue.Tokens() {
				if token.Status == "OPEN" && len(ids) < tokenCount {
					ids = append(ids, token.TokenID)
				}
			}
			if len(ids) != tokenCount {
				t.Fatalf("the venue has %d open tokens, want %d", len(ids), tokenCount)
			}
			client := s.dial(t, anonymous)
			for part := range slices.Chunk(ids, 500) {
				events := client.subscribe(t, `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) { reason price { tokenId } } }`, vars{"ids": part})
				for n := 0; n < len(part); { // a RESYNC of one token may come before the INITIAL of another
					if text(events.value(t), "reason") == "INITIAL" {
						n++
					}
				}
			}
			eventually(t, "the venue streams as many topics as --stream-topics allows", func() bool {
				// Count the topics of books, too: while less than half of the allowed topics are in use, a subscription to a
				// token's price also opens the topic of the token's book.
				n := s.venue.Stats().Stream.Topics
				sum := n["prices"] + n["orderbook"]
				if sum > int64(test.topics) {
					t.Fatalf("the venue streams the topics %v, want at most %d", n, test.topics)
				}
				return sum == int64(test.topics)
			})
			wantJSON(t, "connections", at(s.ask(t, queryStatus, nil, anonymous), "serviceStatus.stream.connections"), fmt.Sprint(test.connections))
		})
	}
}
