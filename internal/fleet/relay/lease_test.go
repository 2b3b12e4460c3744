package relay

import (
	"testing"
	"time"
)

// TestHandOverOfNewLease checks that a replica keeps a shard for handOverAfter under each new lease, even if another replica ranks
// before this replica.
func TestHandOverOfNewLease(t *testing.T) {
	p := newPeriodic(New(Config{Replica: "a"}, nil))
	now := time.Now()
	for fence := range uint64(2) {
		p.applyLease(0, fence+1, now.Add(LeaseFor))
		if p.mustHandOver(0, 1, now) || p.mustHandOver(0, 1, now.Add(handOverAfter)) {
			t.Errorf("lease %d: the replica hands over the shard too early", fence+1)
		}
		now = now.Add(time.Hour)
	}
	p.applyLease(0, 3, now.Add(LeaseFor))
	if p.mustHandOver(0, 1, now) || !p.mustHandOver(0, 1, now.Add(handOverAfter+roundEvery)) {
		t.Error("the replica does not hand over the shard after handOverAfter")
	}
}
