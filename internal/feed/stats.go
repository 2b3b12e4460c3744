package feed

import (
	"sync/atomic"

	"oddsgraph/internal/market"
)

// counts are the feed's counters.
type counts struct {
	gaps, resyncs, spliced, conflated, dropped, reconnects, unacknowledged atomic.Uint64
}

// Stats are counters since the start, and what is watched now.
type Stats struct {
	// Gaps counts breaks in a topic's numbers, Resyncs the snapshots that replaced a state after one or after an outage.
	Gaps, Resyncs uint64
	// Spliced counts the states that were read over REST since the stream did not send them.
	Spliced uint64
	// Conflated counts signals that fell together in a slow watch, Dropped what was lost by watches that ended for it.
	Conflated, Dropped uint64
	// Reconnects counts connections that were dropped because a topic could not be resynced.
	Reconnects uint64
	// Unacknowledged counts subscriptions of markets that the venue did not confirm in time and that were sent again.
	Unacknowledged uint64
	// Topics and Tokens are open now; Resyncing topics among them wait for a snapshot.
	Topics, Tokens, Resyncing int
}

// Stats returns the counters.
func (f *Feed) Stats() Stats {
	s := Stats{
		Gaps: f.counts.gaps.Load(), Resyncs: f.counts.resyncs.Load(), Spliced: f.counts.spliced.Load(),
		Conflated: f.counts.conflated.Load(), Dropped: f.counts.dropped.Load(), Reconnects: f.counts.reconnects.Load(),
		Unacknowledged: f.counts.unacknowledged.Load(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Topics = len(f.topics)
	tokens := make(map[string]struct{}, len(f.topics))
	for key, t := range f.topics {
		if key.Channel == market.ChannelPrices || key.Channel == market.ChannelOrderbook || key.Channel == market.ChannelTrades {
			tokens[key.ID] = struct{}{}
		}
		if t.resyncing() {
			s.Resyncing++
		}
	}
	s.Tokens = len(tokens)
	return s
}
