package relay_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// inBothVenues runs a test with a venue that sends sequence numbers and with a venue that sends none.
func inBothVenues(t *testing.T, replicas, tokens int, test func(f *fleet)) {
	for _, numbered := range []bool{true, false} {
		t.Run(fmt.Sprintf("numbered %t", numbered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, numbered, replicas, tokens)
				defer f.end()
				f.run(3 * time.Second)
				f.mustLive()
				test(f)
				f.noneWrong()
			})
		})
	}
}

// TestOneSubscription checks that the replicas together have one subscription to each topic, even after a replica with more topics
// has joined. The subscriptions to the additional topics must end when no reader watches these topics.
func TestOneSubscription(t *testing.T) {
	inBothVenues(t, 3, 12, func(f *fleet) {
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want one for each of 12 topics", n)
		}
		for _, r := range f.replicas {
			if n := r.client.count(); n == 0 || n == 12 {
				f.Errorf("a replica subscribes to %d of 12 topics, want some but not all", n)
			}
		}
		f.join("more", 20)
		f.run(20 * time.Second) // the new replica becomes the owner of some shards
		f.mustLive()
		if n := f.subscriptions(); n != 20 {
			f.Errorf("the venue has %d subscriptions, want one for each of 20 topics", n)
		}
		if f.replicas[3].client.count() == 0 {
			f.Error("the replica that joined has no subscriptions")
		}
		last := f.replicas[3]
		last.reader.Close()
		clear(last.watches)
		f.run(70 * time.Second)
		f.mustLive()
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want 12, because no reader watches the other topics", n)
		}
	})
}

// TestLostFrames checks that replicas detect lost frames and get snapshots from the topics' owners, not from the venue.
func TestLostFrames(t *testing.T) {
	inBothVenues(t, 3, 12, func(f *fleet) {
		before := f.resyncs()
		random := rand.New(rand.NewPCG(3, 4))
		f.server.set(func() { f.server.lose = func(string) bool { return random.IntN(50) == 0 } })
		f.run(20 * time.Second)
		f.server.set(func() { f.server.lose = nil })
		time.Sleep(2 * time.Second) // during this time, heartbeats reveal the loss of the last frames
		f.mustLive()
		gaps := uint64(0)
		for _, r := range f.replicas {
			gaps += r.feed.Stats().Gaps
		}
		if f.server.lost == 0 || gaps == 0 {
			f.Errorf("got %d lost frames and %d detected gaps, want some of both", f.server.lost, gaps)
		}
		if asked := f.resyncs() - before; asked > 0 {
			f.Errorf("the replicas requested %d snapshots from the venue, want 0, because the owners have the states", asked)
		}
	})
}

// TestTakeover checks that the topics of a killed owner are live again within 2.4 seconds.
func TestTakeover(t *testing.T) {
	inBothVenues(t, 3, 12, func(f *fleet) {
		f.kill(f.owner(bookOf(0)))
		f.run(2 * time.Second)
		f.mustLive()
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want one for each of 12 topics", n)
		}
	})
}

// TestStuckOwner checks that replicas drop the frames that a former owner sends after other replicas have taken over its shards.
func TestStuckOwner(t *testing.T) {
	inBothVenues(t, 3, 12, func(f *fleet) {
		stuck := f.owner(bookOf(0))
		f.server.set(func() { stuck.port.stuck = true })
		f.run(3 * time.Second)
		stuck.port.release()
		f.run(3 * time.Second)
		f.mustLive()
		dropped := uint64(0)
		for _, r := range f.replicas {
			dropped += r.Stats().Fenced
		}
		if dropped == 0 {
			f.Error("no frame was dropped because of an old fence")
		}
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want one for each of 12 topics", n)
		}
	})
}

// TestRestartedServer checks that the topics are live again after the server was unreachable for a second and has lost its state.
func TestRestartedServer(t *testing.T) {
	inBothVenues(t, 3, 12, func(f *fleet) {
		f.server.restart()
		f.run(time.Second)
		f.server.set(func() { f.server.away = false })
		f.run(1600 * time.Millisecond)
		f.mustLive()
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want one for each of 12 topics", n)
		}
	})
}

// TestAlone checks that each replica subscribes to its topics itself while the server is unreachable, and that the replicas share
// subscriptions again afterwards.
func TestAlone(t *testing.T) {
	inBothVenues(t, 3, 12, func(f *fleet) {
		f.replicas[2].client.room = 8
		f.server.restart()
		f.run(9 * time.Second)
		if n := f.subscriptions(); n != 12 {
			f.Errorf("after 9 s: the venue has %d subscriptions, want 12", n)
		}
		f.run(21 * time.Second)
		if n := f.subscriptions(); n != 12+12+8 {
			f.Errorf("after 30 s: the venue has %d subscriptions, want 12 of each replica, but 8 of the replica whose client has room for 8", n)
		}
		if live, _ := f.countLive(); live < 28 {
			f.Errorf("got %d live topics, want at least 28", live)
		}
		f.server.set(func() { f.server.away = false })
		f.replicas[2].client.room = 0
		f.run(50 * time.Second)
		f.mustLive()
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want one for each of 12 topics", n)
		}
	})
}

// TestDeafReplica checks that a replica that receives nothing opens another connection to the server.
func TestDeafReplica(t *testing.T) {
	inBothVenues(t, 2, 12, func(f *fleet) {
		deaf := f.replicas[0]
		f.server.set(func() { deaf.port.deaf = true })
		f.run(6 * time.Second)
		f.mustLive()
		if deaf.port.receives < 2 {
			f.Errorf("the replica has opened %d connections, want at least 2", deaf.port.receives)
		}
	})
}

// TestNothingAfterTheLease checks that an owner whose calls of Publish were blocked sends no queued messages after its leases have
// ended.
func TestNothingAfterTheLease(t *testing.T) {
	inBothVenues(t, 2, 12, func(f *fleet) {
		owner, blocked := f.owner(bookOf(0)), make(chan struct{})
		f.server.set(func() { owner.port.stuck, owner.port.blocked = true, blocked })
		f.run(2 * time.Second)
		f.server.set(func() { owner.port.blocked = nil })
		close(blocked)
		f.run(time.Second)
		f.server.set(func() {
			// The owner passed the texts before these to Publish while it had the leases.
			for _, text := range owner.port.kept[owner.port.waited:] {
				if text[0] == 'm' || text[0] == 'b' {
					f.Errorf("the owner has sent the frame %.100s after its lease", text)
					break
				}
			}
		})
		owner.port.release()
		f.run(3 * time.Second)
		f.mustLive()
	})
}

// TestNoLeases checks that each replica subscribes to its topics itself while no replica can get a lease.
func TestNoLeases(t *testing.T) {
	inBothVenues(t, 2, 12, func(f *fleet) {
		f.server.set(func() { f.replicas[0].port.unleased, f.replicas[1].port.unleased = true, true })
		f.run(12 * time.Second)
		f.mustLive()
		if n := f.subscriptions(); n != 24 {
			f.Errorf("the venue has %d subscriptions, want 12 of each replica", n)
		}
		f.server.set(func() { f.replicas[0].port.unleased, f.replicas[1].port.unleased = false, false })
		f.run(50 * time.Second)
		f.mustLive()
		if n := f.subscriptions(); n != 12 {
			f.Errorf("the venue has %d subscriptions, want one for each of 12 topics", n)
		}
	})
}

// TestNoRoom checks that the readers on all replicas get RATE_LIMITED for a topic to which the owner's client cannot subscribe.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true, 2, 0)
		defer f.end()
		f.replicas[0].client.room, f.replicas[1].client.room = 2, 2
		for i := range 12 {
			w, err := f.replicas[i%2].reader.Watch(bookOf(i), nil)
			if err != nil {
				t.Fatal(err)
			}
			f.replicas[i%2].watches[bookOf(i)] = w
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		live, refused := 0, 0
		for _, r := range f.replicas {
			for topic, w := range r.watches {
				s, err := w.State()
				switch {
				case market.CodeOf(err) == market.CodeRateLimited:
					refused++
				case err == nil && s.Live:
					live++
				default:
					t.Errorf("topic %s: got live %t, error %v; want live or RATE_LIMITED", topic.ID, s.Live, err)
				}
			}
		}
		if live == 0 || live > 4 || live+refused != 12 {
			t.Errorf("got %d live and %d refused topics, want 12 in all and 1 to 4 live", live, refused)
		}
	})
}

// TestUserTopicsAreNotShared checks that user topics go to the replica's own client and that the server gets nothing about them.
func TestUserTopicsAreNotShared(t *testing.T) {
	inBothVenues(t, 1, 1, func(f *fleet) {
		r, user := f.replicas[0], messages.Topic{Channel: messages.ChannelUser, ID: "0xabc", Scope: "s"}
		var published []string
		f.server.set(func() {
			f.server.lose = func(text string) bool {
				published = append(published, text)
				return false
			}
		})
		w, err := r.reader.Watch(user, nil)
		if err != nil {
			f.Fatal(err)
		}
		r.Up([]messages.Topic{user})
		r.Message(&messages.Message{Topic: user, Kind: messages.KindUserSnapshot, Seq: 1, Epoch: "A", ReceivedAt: time.Now()})
		r.Down([]messages.Topic{user}, nil)
		r.Up([]messages.Topic{user})
		r.Message(&messages.Message{Topic: user, Kind: messages.KindUserSnapshot, Seq: 2, Epoch: "A", ReceivedAt: time.Now()})
		r.Refused(messages.Topic{Channel: messages.ChannelUser, ID: "0xabcd"}, market.Errorf(market.CodeForbidden, "no"))
		f.run(time.Second)
		if s, err := w.State(); err != nil || !s.Live {
			f.Errorf("user topic: got live %t, error %v; want live", s.Live, err)
		}
		f.server.set(func() {
			for _, text := range published {
				if strings.Contains(text, "0xabc") || strings.Contains(text, `"Scope":"s"`) {
					f.Errorf("the server got the text %s, which names the user topic", text)
				}
			}
		})
		if len(r.client.users) != 1 || len(published) == 0 {
			f.Errorf("the client got the calls %q and the server got %d texts, want one call and at least one text", r.client.users, len(published))
		}
	})
}
