package resolvers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// silent is an upstream that takes every topic and brings nothing by itself.
type silent struct{}

func (silent) Watch(market.Topic, *market.Credentials) error { return nil }
func (silent) Unwatch(market.Topic)                          {}
func (silent) Resync(market.Topic)                           {}
func (silent) Reconnect(market.Topic)                        {}

// nowhere is a sink that forgets.
type nowhere struct{}

func (nowhere) StreamPrice(*market.Session, *market.Price, market.Meta)   {}
func (nowhere) StreamSpread(*market.Session, *market.Spread, market.Meta) {}
func (nowhere) StreamBook(*market.Session, *market.Book, market.Meta)     {}
func (nowhere) StreamStale(market.Topic)                                  {}
func (nowhere) StreamMarket(string)                                       {}
func (nowhere) StreamAccount(*market.Session, market.Topic, []market.Order, []market.Position, *market.Balance, market.Meta) {
}

// TestAPaceKeepsNoBacklog lets a price change far more often than its follower wants to hear of it.
func TestAPaceKeepsNoBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feed.New(feed.Config{Sink: nowhere{}})
		f.Connect(silent{})
		defer f.Close()
		reader := f.NewReader()
		defer reader.Close()
		topic := market.Topic{Channel: market.ChannelPrices, ID: "1"}
		w, err := reader.Watch(topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Up("e", []market.Topic{topic})
		calls, last := 0, uint64(0)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		follow := &follower{reader: reader, stage: newStage(ctx), every: time.Second, changed: func(*feed.Watch) (bool, error) {
			s, err := w.State()
			calls, last = calls+1, s.Seq
			return true, err
		}}
		done := make(chan error)
		go func() { done <- follow.run(ctx) }()
		const changes = 100
		for seq := range uint64(changes) {
			price := market.NewDecimal(int64(seq), 2)
			f.Message(&market.Message{Kind: market.MessagePrice, Topic: topic, Epoch: "e", Seq: seq + 1, Price: &market.Price{TokenID: "1", Price: price}})
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if last != changes {
			t.Errorf("the last call saw state %d, want %d", last, changes)
		}
		if calls < 10 || calls > 13 { // ten seconds of changes, a call a second
			t.Errorf("%d calls for %d changes in ten seconds, want one a second", calls, changes)
		}
	})
}
