package feed

import (
	"oddsgraph/internal/market"
)

// Up implements the upstream's handler: snapshots of the topics follow.
func (f *Feed) Up(_ string, topics []market.Topic) {
	s := &session{}
	for _, key := range topics {
		if t := f.find(key); t != nil {
			t.up(s)
		}
	}
}

// Acknowledged implements the upstream's handler: the venue sends what changes in the topics from now on.
func (f *Feed) Acknowledged(topics []market.Topic) {
	for _, key := range topics {
		if t := f.find(key); t != nil {
			t.acknowledged()
		}
	}
}

// Down implements the upstream's handler: the topics are no longer live. A session that loses all of its topics ends, so
// that what was streamed in it is stale by one write.
func (f *Feed) Down(topics []market.Topic, _ error) {
	lost := make([]*topic, 0, len(topics))
	leaving := make(map[*session]int32)
	for _, key := range topics {
		if t := f.find(key); t != nil {
			lost = append(lost, t)
			if s := t.currentSession(); s != nil {
				leaving[s]++
			}
		}
	}
	now := f.cfg.Clock.Now()
	for s, n := range leaving {
		if n >= s.topics.Load() {
			s.End(now)
		}
	}
	for _, t := range lost {
		t.down()
	}
}

// Message implements the upstream's handler.
func (f *Feed) Message(m *market.Message) {
	if t := f.find(m.Topic); t != nil {
		t.message(m)
	}
}

// Heartbeat implements the upstream's handler: it finds what was lost at the end of a topic.
func (f *Feed) Heartbeat(epoch string, seqs map[market.Topic]uint64) {
	for key, seq := range seqs {
		if t := f.find(key); t != nil {
			t.heartbeat(epoch, seq)
		}
	}
}

// Refused implements the upstream's handler: the topic ends for its watches. It may have been watched anew meanwhile, so
// it is let go of upstream too.
func (f *Feed) Refused(key market.Topic, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.topics[key]; t != nil {
		f.fail(t, err)
	}
}
