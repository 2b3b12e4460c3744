package feed

import "oddsgraph/internal/market/messages"

// Up starts a session for topics whose subscriptions were sent on one connection.
func (f *Feed) Up(topics []messages.Topic) {
	s := &session{}
	for _, key := range topics {
		if t := f.find(key); t != nil {
			t.up(s)
		}
	}
}

// Acknowledged reports that the venue has confirmed the subscriptions of topics.
func (f *Feed) Acknowledged(topics []messages.Topic) {
	for _, key := range topics {
		if t := f.find(key); t != nil {
			t.acknowledged()
		}
	}
}

// Down reports that topics have lost their connection. Down ends a session that has no topics left. This makes all values of the
// session stale with one write.
func (f *Feed) Down(topics []messages.Topic, _ error) {
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

// Message applies a message to its topic.
func (f *Feed) Message(m *messages.Message) {
	if t := f.find(m.Topic); t != nil {
		t.message(m)
	}
}

// Heartbeat reports the venue's present sequence numbers of topics. With them, the feed detects the loss of a topic's last message.
func (f *Feed) Heartbeat(epoch string, seqs map[messages.Topic]uint64) {
	for key, seq := range seqs {
		if t := f.find(key); t != nil {
			t.heartbeat(epoch, seq)
		}
	}
}

// Refused ends the watches of a topic that the venue has refused. It also unsubscribes from the topic, because a subscription may
// have been sent again after the refusal.
func (f *Feed) Refused(key messages.Topic, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.topics[key]; t != nil {
		f.fail(t, err)
	}
}
