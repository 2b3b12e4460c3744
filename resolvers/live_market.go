package resolvers

import (
	"context"
	"reflect"
	"slices"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// shown is what a subscription has sent of a topic.
type shown struct {
	// sent tells that there was an event; live and resyncs are those of the state that it showed.
	sent, live bool
	resyncs    uint64
	// streamed tells that the last event came from the stream and not from REST.
	streamed bool
}

// reason returns why a state is to be sent, and whether it is: same tells that its value is the one that was sent.
func (s *shown) reason(now feed.State, same bool) (model.UpdateReason, bool) {
	switch {
	case !s.sent:
		return model.UpdateReasonInitial, true
	case now.Resyncs != s.resyncs, !s.streamed && now.Live:
		return model.UpdateReasonResync, true
	case !same && now.Live:
		return model.UpdateReasonChange, true
	case now.Live != s.live:
		return model.UpdateReasonFreshness, true
	default:
		return "", false
	}
}

// note remembers a state that was sent.
func (s *shown) note(now feed.State) {
	s.sent, s.streamed, s.live, s.resyncs = true, true, now.Live, now.Resyncs
}

// noteREST remembers that a value was sent that was read over REST.
func (s *shown) noteREST() { s.sent, s.streamed, s.live = true, false, false }

// livePrice is what a subscription has sent of a token.
type livePrice struct {
	shown
	token  string
	price  *market.Price
	spread *market.Spread
	meta   market.Meta
}

func (r *Resolver) subscriptionPriceChanged(ctx context.Context, tokenIDs []string, maxPerSecond *int) (<-chan model.PriceUpdate, error) {
	ids, err := distinctIDs("tokenIds", tokenIDs)
	if err != nil {
		return nil, err
	}
	every, err := interval(maxPerSecond, maxPace)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.PriceUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		tokens, polled := make(map[*feed.Watch]*livePrice, len(ids)), make([]*livePrice, 0)
		all := make([]*livePrice, len(ids))
		for i, id := range ids {
			all[i] = &livePrice{token: id}
			w, err := reader.Watch(market.Topic{Channel: market.ChannelPrices, ID: id}, nil)
			if err != nil {
				polled = append(polled, all[i]) // no room on the stream: read over REST
				continue
			}
			tokens[w] = all[i]
			reader.Accompany(market.Topic{Channel: market.ChannelOrderbook, ID: id})
		}
		unknown := newUnknowns(ctx, "token", ids)
		show := func(t *livePrice, reason model.UpdateReason, previous *market.Price) bool {
			update := model.PriceUpdate{Reason: reason, Price: model.TokenPrice{Quote: t.price, Meta: t.meta}}
			if s := t.spread; s != nil && (s.BestBid != nil || s.BestAsk != nil || s.Spread != nil) {
				update.Spread = &model.Spread{Top: s, Meta: t.meta}
			}
			if previous != nil {
				update.PreviousPrice = &previous.Price
			}
			return out.send(update, t.token, market.Replace, reason)
		}
		send := func(t *livePrice, reason model.UpdateReason, p *market.Price, s *market.Spread, meta market.Meta) bool {
			previous := t.price
			t.price, t.spread, t.meta = p, s, meta
			return show(t, reason, previous)
		}
		// apply sends what was read, unless the stream has brought it meanwhile.
		apply := func(wanted []*livePrice, results []market.Result[market.Read[*market.Price]]) (bool, error) {
			for i, t := range wanted {
				if t.streamed && t.live {
					continue
				}
				p := results[i].Value.Value
				switch {
				case results[i].Err != nil: // the next poll tries again
				case p == nil && !t.sent:
					if err := unknown.add(t.token); err != nil {
						return false, err
					}
				case p == nil, t.price != nil && t.price.Price.Cmp(p.Price) == 0:
				default:
					reason := model.UpdateReasonChange
					if !t.sent {
						reason = model.UpdateReasonInitial
					}
					t.noteREST()
					if !send(t, reason, p, nil, results[i].Value.Meta) {
						return false, nil
					}
				}
			}
			return true, nil
		}
		read := func(wanted []*livePrice) fetch {
			if len(wanted) == 0 {
				return nil
			}
			return func(ctx context.Context) func() (bool, error) {
				ids := make([]string, len(wanted))
				for i, t := range wanted {
					ids[i] = t.token
				}
				results := make([]market.Result[market.Read[*market.Price]], len(ids))
				r.reads(ctx).Prices.GetMany(ids, results)
				return func() (bool, error) { return apply(wanted, results) }
			}
		}
		f := &follower{reader: reader, stage: out.stage, every: every}
		f.present = func(reason model.UpdateReason) (bool, error) {
			unknown.repeat()
			for _, t := range all {
				if t.sent && !show(t, reason, nil) {
					return false, nil
				}
			}
			return true, nil
		}
		f.changed = func(w *feed.Watch) (bool, error) {
			t := tokens[w]
			if t == nil {
				return true, nil
			}
			s, err := w.State()
			if err != nil {
				switch {
				case unknownTo(err):
					delete(tokens, w)
					return true, unknown.add(t.token)
				case market.CodeOf(err) == market.CodeRateLimited: // others need the room on the stream
					delete(tokens, w)
					w.Close()
					t.streamed, polled = false, append(polled, t)
					return true, nil
				}
				return false, err
			}
			if !s.Known {
				return true, nil
			}
			reason, wanted := t.reason(s, t.price != nil && s.Price.Price.Cmp(t.price.Price) == 0)
			if !wanted {
				return true, nil
			}
			t.note(s)
			return send(t, reason, s.Price, s.Spread, s.Meta), nil
		}
		settled := false
		f.due = func(polling bool) fetch {
			if !polling {
				return nil
			}
			var wanted []*livePrice
			for _, t := range all {
				if !settled && !t.sent && !unknown.gone[t.token] {
					wanted = append(wanted, t)
				}
			}
			if settled {
				wanted = slices.Clone(polled)
				for w, t := range tokens {
					if s, err := w.State(); err == nil && !s.Live && !t.streamed && !unknown.gone[t.token] {
						wanted = append(wanted, t)
					}
				}
			}
			settled = true
			return read(wanted)
		}
		return f.run(ctx)
	}), nil
}

func (r *Resolver) subscriptionOrderbookChanged(ctx context.Context, tokenID string, depth *int, deltas *bool, maxPerSecond *int) (<-chan model.OrderbookUpdate, error) {
	if err := market.CheckID(tokenID); err != nil {
		return nil, err
	}
	d := or(depth, 20)
	if d < 1 || d > market.MaxBookDepth {
		return nil, badInput("depth is %d; it must be 1 to %d", d, market.MaxBookDepth)
	}
	every, err := interval(maxPerSecond, maxPace)
	if err != nil {
		return nil, err
	}
	mode := market.Replace
	if or(deltas, false) {
		mode = market.Delta
	}
	return subscribe(ctx, func(out *outlet[model.OrderbookUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		w, _ := reader.Watch(market.Topic{Channel: market.ChannelOrderbook, ID: tokenID}, nil) // without room it is read over REST
		reader.Accompany(market.Topic{Channel: market.ChannelPrices, ID: tokenID})
		var last shown
		var book *model.Orderbook
		send := func(reason model.UpdateReason, b *market.Book, meta market.Meta) bool {
			next := &model.Orderbook{Book: b, Meta: meta}
			u := model.OrderbookUpdate{Kind: model.BookUpdateKindSnapshot, Reason: reason, Book: *next, Bids: b.Bids, Asks: b.Asks}
			if book != nil {
				u.PreviousSequence = book.Sequence()
			}
			if mode == market.Delta && book != nil && b.Seq != 0 && (reason == model.UpdateReasonChange || reason == model.UpdateReasonFreshness) {
				u.Kind = model.BookUpdateKindDelta
				u.Bids = market.BookSideDelta(book.Book.Bids, b.Bids, market.SideBuy)
				u.Asks = market.BookSideDelta(book.Book.Asks, b.Asks, market.SideSell)
			}
			book = next
			return out.send(u, tokenID, mode, reason)
		}
		same := func(b *market.Book) bool {
			return book != nil && sameLevels(book.Book.Bids, b.Bids) && sameLevels(book.Book.Asks, b.Asks)
		}
		f := &follower{reader: reader, stage: out.stage, every: every}
		f.present = func(reason model.UpdateReason) (bool, error) {
			if book == nil {
				return true, nil
			}
			u := model.OrderbookUpdate{Kind: model.BookUpdateKindSnapshot, Reason: reason, Book: *book, Bids: book.Book.Bids, Asks: book.Book.Asks}
			return out.send(u, tokenID, mode, reason), nil
		}
		f.changed = func(changed *feed.Watch) (bool, error) {
			if changed != w {
				return true, nil
			}
			s, err := w.State()
			switch {
			case unknownTo(err):
				return false, newUnknowns(ctx, "token", []string{tokenID}).add(tokenID)
			case market.CodeOf(err) == market.CodeRateLimited: // others need the room on the stream
				w.Close()
				w, last.streamed = nil, false
				return true, nil
			case err != nil || !s.Known:
				return true, err
			}
			cut := s.Book.Cut(d)
			reason, wanted := last.reason(s, same(cut))
			if !wanted {
				return true, nil
			}
			if reason == model.UpdateReasonFreshness {
				cut = book.Book // the value that was sent, with its new freshness
			}
			last.note(s)
			return send(reason, cut, s.Meta), nil
		}
		apply := func(read market.Read[*market.Book], err error) (bool, error) {
			if err != nil || last.streamed && last.live {
				return true, nil // the stream, or the next poll
			}
			if read.Value == nil {
				return false, newUnknowns(ctx, "token", []string{tokenID}).add(tokenID)
			}
			cut, reason := read.Value.Cut(d), model.UpdateReasonChange
			if !last.sent {
				reason = model.UpdateReasonInitial
			} else if same(cut) {
				return true, nil
			}
			last.noteREST()
			return send(reason, cut, read.Meta), nil
		}
		settled := false
		f.due = func(polling bool) fetch {
			if !polling {
				return nil
			}
			first := !settled
			settled = true
			if first && last.sent {
				return nil
			}
			if !first && w != nil {
				if s, err := w.State(); err != nil || s.Live || last.streamed {
					return nil
				}
			}
			return func(ctx context.Context) func() (bool, error) {
				read, err := r.reads(ctx).Book(tokenID, d)
				return func() (bool, error) { return apply(read, err) }
			}
		}
		return f.run(ctx)
	}), nil
}

func sameLevels(a, b []market.Level) bool {
	return slices.EqualFunc(a, b, func(x, y market.Level) bool { return x.Price.Cmp(y.Price) == 0 && x.Size.Cmp(y.Size) == 0 })
}

// liveMarket is what a subscription has sent of a market.
type liveMarket struct {
	shown
	id     string
	market *market.Market
	meta   market.Meta
	// owed is the reason of an event for which the market is still to be read, changes are those that it is to be sent with.
	// tried tells that reading for them was tried since they came.
	owed    model.UpdateReason
	changes []market.MarketChange
	tried   bool
}

func (r *Resolver) subscriptionMarketChanged(ctx context.Context, marketIDs []string) (<-chan model.MarketUpdate, error) {
	ids, err := distinctIDs("marketIds", marketIDs)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.MarketUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		all, watched := make([]*liveMarket, len(ids)), make(map[*feed.Watch]*liveMarket, len(ids))
		for i, id := range ids {
			all[i] = &liveMarket{id: id}
			if w, err := reader.Watch(market.Topic{Channel: market.ChannelMarket, ID: id}, nil); err == nil {
				watched[w] = all[i]
			}
		}
		unknown := newUnknowns(ctx, "market", ids)
		// apply sends what was read of markets: what is owed, or what a poll has found changed.
		apply := func(wanted []*liveMarket, results []market.Result[market.Read[*market.Market]]) (bool, error) {
			for i, m := range wanted {
				now := results[i].Value.Value
				switch {
				case results[i].Err != nil && len(m.changes) == 0: // the next poll tries again
					continue
				case results[i].Err == nil && now == nil && !m.sent:
					if err := unknown.add(m.id); err != nil {
						return false, err
					}
					continue
				case now == nil && m.market == nil:
					continue
				}
				before := m.market
				if now != nil {
					m.market, m.meta = now, results[i].Value.Meta
				}
				changes, owed := m.changes, m.owed
				m.changes, m.owed = nil, ""
				if results[i].Err != nil {
					m.owed = owed // it is told of the changes only
				}
				switch {
				case !m.sent:
					m.sent = true
					for _, change := range changes {
						m.market = m.market.With(change)
					}
					if !m.show(out, model.UpdateReasonInitial, nil) {
						return false, nil
					}
					continue
				case owed != "" && results[i].Err == nil:
					for _, change := range changes {
						m.market = m.market.With(change)
					}
					if !m.show(out, owed, nil) {
						return false, nil
					}
					continue
				}
				for _, change := range changes {
					m.market = m.market.With(change)
					kind := model.ParseMarketChange(change.Kind)
					if !m.show(out, model.UpdateReasonChange, &kind) {
						return false, nil
					}
				}
				if len(changes) == 0 && !reflect.DeepEqual(before, m.market) {
					if !m.show(out, model.UpdateReasonChange, changeOf(before, m.market)) {
						return false, nil
					}
				}
			}
			return true, nil
		}
		f := &follower{reader: reader, stage: out.stage}
		f.present = func(reason model.UpdateReason) (bool, error) {
			unknown.repeat()
			for _, m := range all {
				if m.sent && !m.show(out, reason, nil) {
					return false, nil
				}
			}
			return true, nil
		}
		f.changed = func(w *feed.Watch) (bool, error) {
			m := watched[w]
			s, items, err := w.Take()
			switch {
			case m == nil:
				return true, nil
			case unknownTo(err):
				delete(watched, w)
				return true, unknown.add(m.id)
			case err != nil:
				return false, err
			}
			if m.sent && len(items.Changes) > 0 {
				m.changes, m.tried = append(m.changes, items.Changes...), false
			}
			resynced, turned := s.Resyncs != m.resyncs || s.Live && !m.live, s.Live != m.live
			m.live, m.resyncs = s.Live, s.Resyncs
			switch {
			case !m.sent && s.Live:
				m.owed, m.tried = model.UpdateReasonInitial, false
			case m.sent && resynced:
				m.owed, m.tried = model.UpdateReasonResync, false
			case m.sent && turned:
				m.meta = s.Meta
				if m.meta.ReceivedAt.IsZero() {
					m.meta.ReceivedAt = r.Clock.Now()
				}
				return m.show(out, model.UpdateReasonFreshness, nil), nil
			}
			return true, nil
		}
		settled := false
		f.due = func(polling bool) fetch {
			var wanted []*liveMarket
			for _, m := range all {
				if unknown.gone[m.id] {
					continue
				}
				owed := (m.owed != "" || len(m.changes) > 0) && (polling || !m.tried)
				if owed || polling && (!m.sent || settled && !m.live) {
					wanted = append(wanted, m)
					m.tried = true
				}
			}
			settled = settled || polling
			if len(wanted) == 0 {
				return nil
			}
			return func(ctx context.Context) func() (bool, error) {
				refs := make([]market.MarketRef, len(wanted))
				for i, m := range wanted {
					refs[i] = byID(m.id)
				}
				results := make([]market.Result[market.Read[*market.Market]], len(refs))
				r.reads(ctx).Markets.GetMany(refs, results)
				return func() (bool, error) { return apply(wanted, results) }
			}
		}
		return f.run(ctx)
	}), nil
}

// show sends the market as it is known.
func (m *liveMarket) show(out *outlet[model.MarketUpdate], reason model.UpdateReason, change *model.MarketChange) bool {
	return out.send(model.MarketUpdate{Reason: reason, Change: change, Market: model.Market{Market: m.market, Meta: m.meta}}, m.id, market.Append, reason)
}

// changeOf says what has changed between two reads of a market.
func changeOf(before, now *market.Market) *model.MarketChange {
	change := model.MarketMetadata
	switch {
	case before.Status != now.Status && now.Status == market.StatusResolved:
		change = model.MarketResolved
	case before.Status != now.Status:
		change = model.MarketStatus
	case (before.TickSize == nil) != (now.TickSize == nil), before.TickSize != nil && before.TickSize.Cmp(*now.TickSize) != 0:
		change = model.MarketTickSize
	}
	return &change
}

// maxInitialTrades is the greatest number of trades of a subscription's first event.
const maxInitialTrades = 50

func (r *Resolver) subscriptionTradesAdded(ctx context.Context, tokenIDs []string) (<-chan model.TradesUpdate, error) {
	ids, err := distinctIDs("tokenIds", tokenIDs)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.TradesUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		unknown := newUnknowns(ctx, "token", ids)
		watches := make(map[*feed.Watch]*liveTape, len(ids))
		for _, id := range ids {
			w, err := reader.Watch(market.Topic{Channel: market.ChannelTrades, ID: id}, nil)
			if err != nil {
				return err // the tape is on the stream only
			}
			watches[w] = &liveTape{}
		}
		send := func(reason model.UpdateReason, trades []market.Trade, gap bool) bool {
			return out.send(model.TradesUpdate{Reason: reason, Trades: tradesOf(trades), Gap: gap}, "", market.Append, reason)
		}
		sent := false
		// latest are the newest trades that were sent, oldest first.
		latest := func() []market.Trade {
			var trades []market.Trade
			for _, last := range watches {
				trades = append(trades, last.trades...)
			}
			slices.SortStableFunc(trades, func(a, b market.Trade) int { return a.Timestamp.Compare(b.Timestamp) })
			return trades[max(0, len(trades)-maxInitialTrades):]
		}
		initial := func() (bool, error) {
			if sent {
				return true, nil
			}
			sent = true
			for w, last := range watches {
				s, _, err := w.Take()
				if err == nil && s.Known {
					last.trades = s.Trades
					last.note(s)
				}
			}
			return send(model.UpdateReasonInitial, latest(), false), nil
		}
		f := &follower{reader: reader, stage: out.stage}
		f.due = func(polling bool) fetch {
			if !polling || sent {
				return nil
			}
			return func(context.Context) func() (bool, error) { return initial }
		}
		f.present = func(reason model.UpdateReason) (bool, error) {
			unknown.repeat()
			return send(reason, latest(), reason == model.UpdateReasonResync), nil
		}
		f.changed = func(w *feed.Watch) (bool, error) {
			last := watches[w]
			if last == nil {
				return true, nil
			}
			if !sent {
				// All are looked at, since those that have ended are heard of only once.
				onTheirWay := false
				for w := range watches {
					switch s, err := w.State(); {
					case unknownTo(err):
						delete(watches, w)
						if err := unknown.add(w.Topic().ID); err != nil {
							return false, err
						}
					case err != nil:
						return false, err
					case !s.Known:
						onTheirWay = true
					}
				}
				if onTheirWay {
					return true, nil
				}
				return initial()
			}
			s, items, err := w.Take()
			if unknownTo(err) {
				delete(watches, w)
				return true, unknown.add(w.Topic().ID)
			}
			if err != nil || !s.Known {
				return err == nil, err
			}
			if !last.sent { // its first state came after the first event
				items.Trades = s.Trades
			}
			reason, wanted := last.reason(s, len(items.Trades) == 0 && !items.Gap)
			if reason == model.UpdateReasonInitial {
				reason = model.UpdateReasonResync
			}
			last.note(s)
			last.trades = s.Trades
			return !wanted || send(reason, items.Trades, items.Gap), nil
		}
		return f.run(ctx)
	}), nil
}

// liveTape is what a subscription has sent of a token's tape.
type liveTape struct {
	shown
	// trades are the latest ones, oldest first.
	trades []market.Trade
}

func tradesOf(trades []market.Trade) []model.Trade {
	out := make([]model.Trade, len(trades))
	for i := range trades {
		out[i] = model.Trade{Trade: &trades[i]}
	}
	return out
}

func (r *Resolver) subscriptionStreamStatusChanged(ctx context.Context) (<-chan model.StreamStatus, error) {
	return subscribe(ctx, func(out *outlet[model.StreamStatus]) error {
		var last *model.StreamStatus
		show := func(reason model.UpdateReason) (bool, error) {
			return out.send(*last, "", market.Replace, reason), nil
		}
		tick := time.NewTicker(statusEvery)
		defer tick.Stop()
		for {
			now := r.Status(ctx).Stream
			if last == nil || changedStatus(last, &now) {
				last = &now
				if wanted, err := show(model.UpdateReasonChange); !wanted || err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			case <-out.waiting():
				if wanted, err := out.show(show); !wanted || err != nil {
					return err
				}
			}
		}
	}), nil
}

// statusEvery is how often the stream's status is looked at; looking costs nothing upstream.
const statusEvery = 250 * time.Millisecond

// changedStatus reports whether a status differs by more than the time of the last message, which is always another.
func changedStatus(a, b *model.StreamStatus) bool {
	return a.State != b.State || !a.Since.Equal(b.Since) || a.Connections != b.Connections || a.Reconnects != b.Reconnects ||
		a.Resyncs != b.Resyncs || a.WatchedTokens != b.WatchedTokens
}
