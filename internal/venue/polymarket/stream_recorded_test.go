package polymarket

import (
	"encoding/json"
	"slices"
	"testing"

	"oddsgraph/internal/market/messages"
)

const recordedAsset = "76670567130917723816490572615540605537878462672464291990940067659127658071111"

func TestRecordedRun(t *testing.T) {
	s := newSocket(t, topic(messages.ChannelOrderbook, recordedAsset))
	frames := recorded(t, "market_book_then_price_changes.json")
	if n := replay(t, s, recordedAsset, frames); n != len(frames) {
		t.Errorf("%d frames cause %d messages, want one message for each frame", len(frames), n)
	}
}

// TestRecordedBurst replays the recorded frames of a marketable order. The recording does not contain the book before the order, so
// the test derives it from the book after the order.
func TestRecordedBurst(t *testing.T) {
	frames := recorded(t, "market_crossing_burst_end.json")
	var after struct {
		Bids, Asks []map[string]string
	}
	last := frames[len(frames)-1]
	if err := json.Unmarshal(last, &after); err != nil {
		t.Fatal(err)
	}
	after.Asks = slices.DeleteFunc(after.Asks, func(l map[string]string) bool { return l["price"] == "0.301" })
	for _, p := range []string{"0.301", "0.311"} {
		after.Bids = append(after.Bids, map[string]string{"price": p, "size": "45.83"})
	}
	before, err := json.Marshal(map[string]any{"event_type": "book", "asset_id": recordedAsset, "timestamp": "1790658826000", "bids": after.Bids, "asks": after.Asks})
	if err != nil {
		t.Fatal(err)
	}
	s := newSocket(t, topic(messages.ChannelOrderbook, recordedAsset))
	if n := replay(t, s, recordedAsset, append([]json.RawMessage{before}, frames...)); n != 2 {
		t.Errorf("the frames cause %d messages; want 2, the book and one change, because the last book equals the changed book", n)
	}
}
