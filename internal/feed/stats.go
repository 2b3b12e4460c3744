package feed

import (
	"sync/atomic"

	"oddsgraph/internal/market/messages"
)

type counts struct {
	gaps, resyncs, spliced, conflated, dropped, resubscribed atomic.Uint64
}

// Stats contains counters since the start of the feed, and the present counts of topics.
type Stats struct {
	// Gaps counts gaps in the messages of topics. Resyncs counts how often a complete state has replaced an incomplete state after a
	// gap or an outage.
	Gaps, Resyncs uint64
	// Spliced counts how often a topic became live with a book that was read over REST, because the stream sent no snapshot.
	Spliced uint64
	// Conflated counts the changes of a watch that its reader gets together with an earlier change. Dropped counts the items that were
	// lost when a watch ended because its queue was full.
	Conflated, Dropped uint64
	// Resubscribed counts subscriptions that the feed sent again because neither a snapshot nor a confirmation arrived in time.
	Resubscribed uint64
	// Topics is the number of open topics. Tokens is the number of tokens with an open topic. Resyncing is the number of topics that
	// wait for a snapshot after a gap.
	Topics, Tokens, Resyncing int
}

// Stats returns the counters and the counts of topics.
func (f *Feed) Stats() Stats {
	s := Stats{
		Gaps: f.counts.gaps.Load(), Resyncs: f.counts.resyncs.Load(), Spliced: f.counts.spliced.Load(),
		Conflated: f.counts.conflated.Load(), Dropped: f.counts.dropped.Load(),
		Resubscribed: f.counts.resubscribed.Load(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Topics = len(f.topics)
	tokens := make(map[string]struct{}, len(f.topics))
	for key, t := range f.topics {
		if key.Channel == messages.ChannelPrices || key.Channel == messages.ChannelOrderbook || key.Channel == messages.ChannelTrades {
			tokens[key.ID] = struct{}{}
		}
		if t.resyncing() {
			s.Resyncing++
		}
	}
	s.Tokens = len(tokens)
	return s
}
