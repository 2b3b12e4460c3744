package resolvers

import (
	"context"
	"slices"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// watchAccount follows an account as the caller of ctx sees it.
func (r *Resolver) watchAccount(ctx context.Context, reader *feed.Reader, a market.Address) (*feed.Watch, error) {
	if err := identified(ctx); err != nil {
		return nil, err
	}
	topic := market.Topic{Channel: market.ChannelUser, ID: string(a), Scope: r.Scope(ctx, a)}
	return reader.Watch(topic, market.CredentialsFrom(ctx))
}

// refused reports whether the venue refused the caller, so that a subscription ends rather than goes on over REST.
func refused(err error) bool {
	code := market.CodeOf(err)
	return code == market.CodeUnauthenticated || code == market.CodeForbidden
}

// accountReader reads one part of an account over REST and returns what sends it for a reason: that which is owed, or
// CHANGE.
type accountReader func(ctx context.Context) (send func(reason model.UpdateReason) (bool, error), err error)

// accountFollower makes the follower of a subscription that shows one part of an account: changed is told of its streamed
// states and returns a reason where one is owed an event that must be read; read reads what REST says, for that, at the
// start and while the stream does not bring it; present sends what was sent last.
func accountFollower(reader *feed.Reader, stage *stage, last *shown, changed func(s feed.State, items feed.Items) (owed model.UpdateReason, wanted bool), read accountReader, present func(reason model.UpdateReason) bool) *follower {
	f := &follower{reader: reader, stage: stage}
	f.present = func(reason model.UpdateReason) (bool, error) { return !last.sent || present(reason), nil }
	// state is the account's latest; owed is the reason of an event for which it is still to be read.
	var state feed.State
	owed, tried := model.UpdateReason(""), false
	f.changed = func(w *feed.Watch) (bool, error) {
		s, items, err := w.Take()
		if err != nil {
			return false, err
		}
		state = s
		if !s.Known || s.Account == nil {
			return true, nil
		}
		reason, wanted := changed(s, items)
		if reason != "" {
			owed, tried = reason, false
		}
		return wanted, nil
	}
	settled := false
	f.due = func(polling bool) fetch {
		first := polling && !settled
		settled = settled || polling
		switch {
		case owed != "" && (polling || !tried):
			tried = true
		case !polling, last.sent && (first || state.Live):
			return nil
		}
		return func(ctx context.Context) func() (bool, error) {
			send, err := read(ctx)
			return func() (bool, error) {
				if refused(err) {
					return false, err
				}
				if err != nil {
					return true, nil // the stream, or the next poll
				}
				reason, streamed := owed, owed != "" && state.Live
				if owed = ""; reason == "" {
					if last.sent && last.streamed && last.live {
						return true, nil // the stream has brought it meanwhile
					}
					reason = model.UpdateReasonChange
				}
				if !last.sent {
					reason = model.UpdateReasonInitial
				}
				if streamed {
					last.note(state)
				} else {
					last.noteREST()
				}
				return send(reason)
			}
		}
	}
	return f
}

func (r *Resolver) subscriptionBalanceChanged(ctx context.Context, a market.Address) (<-chan model.BalanceUpdate, error) {
	if err := identified(ctx); err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.BalanceUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		_, _ = r.watchAccount(ctx, reader, a) // without room it is read over REST
		var last shown
		var balance *market.Balance
		var held market.Meta
		show := func(reason model.UpdateReason) bool {
			return out.send(model.BalanceUpdate{Reason: reason, Balance: model.Balance{Balance: balance, Address: a, Meta: held}}, "", market.Replace, reason)
		}
		send := func(reason model.UpdateReason, b *market.Balance, meta market.Meta) bool {
			balance, held = b, meta
			return show(reason)
		}
		return accountFollower(reader, out.stage, &last, func(s feed.State, _ feed.Items) (model.UpdateReason, bool) {
			b := s.Account.Balance
			if b == nil {
				return "", true
			}
			reason, wanted := last.reason(s, balance != nil && sameBalance(balance, b))
			if !wanted {
				return "", true
			}
			last.note(s)
			return "", send(reason, b, s.Meta)
		}, func(ctx context.Context) (func(model.UpdateReason) (bool, error), error) {
			read, err := readUser(ctx, &r.reads(ctx).Balances, a)
			return func(reason model.UpdateReason) (bool, error) {
				if reason == model.UpdateReasonChange && balance != nil && sameBalance(balance, read.Value) {
					return true, nil
				}
				return send(reason, read.Value, read.Meta), nil
			}, err
		}, show).run(ctx)
	}), nil
}

func sameBalance(a, b *market.Balance) bool {
	return sameDecimal(a.PortfolioValue, b.PortfolioValue) && sameDecimal(a.CashBalance, b.CashBalance) &&
		sameDecimal(a.PositionsValue, b.PositionsValue) && sameDecimal(a.TotalValue, b.TotalValue)
}

func sameDecimal(a, b *market.Decimal) bool {
	return a == b || a != nil && b != nil && a.Cmp(*b) == 0
}

func (r *Resolver) subscriptionOrdersChanged(ctx context.Context, a market.Address) (<-chan model.OrdersUpdate, error) {
	if err := identified(ctx); err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.OrdersUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		_, _ = r.watchAccount(ctx, reader, a) // without room it is read over REST
		var last shown
		var orders []market.Order
		send := func(reason model.UpdateReason, now []market.Order) bool {
			u := model.OrdersUpdate{Reason: reason, Changed: []model.Order{}, ClosedOrderIds: []string{}}
			whole := reason == model.UpdateReasonInitial || reason == model.UpdateReasonResync
			for i := range now {
				if j := slices.IndexFunc(orders, func(o market.Order) bool { return o.OrderID == now[i].OrderID }); whole || j < 0 || !sameOrder(&orders[j], &now[i]) {
					u.Changed = append(u.Changed, model.Order{Order: &now[i], Address: a})
				}
			}
			for i := range orders {
				if !slices.ContainsFunc(now, func(o market.Order) bool { return o.OrderID == orders[i].OrderID }) {
					u.ClosedOrderIds = append(u.ClosedOrderIds, model.Order{Order: &orders[i], Address: a}.ID())
				}
			}
			orders = now
			return out.send(u, "", market.Delta, reason)
		}
		show := func(reason model.UpdateReason) bool { return send(reason, orders) }
		same := func(now []market.Order) bool {
			return slices.EqualFunc(orders, now, func(x, y market.Order) bool { return x.OrderID == y.OrderID && sameOrder(&x, &y) })
		}
		return accountFollower(reader, out.stage, &last, func(s feed.State, _ feed.Items) (model.UpdateReason, bool) {
			reason, wanted := last.reason(s, same(s.Account.Orders))
			if !wanted {
				return "", true
			}
			last.note(s)
			return "", send(reason, s.Account.Orders)
		}, func(ctx context.Context) (func(model.UpdateReason) (bool, error), error) {
			read, err := readUser(ctx, &r.reads(ctx).Orders, a)
			return func(reason model.UpdateReason) (bool, error) {
				if reason == model.UpdateReasonChange && same(*read.Value) {
					return true, nil
				}
				return send(reason, *read.Value), nil
			}, err
		}, show).run(ctx)
	}), nil
}

func sameOrder(a, b *market.Order) bool {
	return a.Status == b.Status && a.StatusRaw == b.StatusRaw && a.Price.Cmp(b.Price) == 0 && a.Size.Cmp(b.Size) == 0 && a.FilledSize.Cmp(b.FilledSize) == 0
}

func (r *Resolver) subscriptionUserTradesAdded(ctx context.Context, a market.Address) (<-chan model.TradesUpdate, error) {
	if err := identified(ctx); err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.TradesUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		_, _ = r.watchAccount(ctx, reader, a) // without room it is read over REST
		var last shown
		seen := newRecent(4 * maxInitialTrades)
		// sent are the newest trades that were sent, oldest first; fills are those that the stream brought since, and gap
		// tells that some may be missing before them.
		var sent, fills []market.Trade
		gap := false
		send := func(reason model.UpdateReason, trades []market.Trade, gap bool) bool {
			fresh := slices.DeleteFunc(trades, func(t market.Trade) bool { return !seen.add(t.Key()) })
			sent = append(sent, fresh...)
			sent = slices.Clone(sent[max(0, len(sent)-maxInitialTrades):])
			if reason == model.UpdateReasonChange && len(fresh) == 0 && !gap {
				return true
			}
			return out.send(model.TradesUpdate{Reason: reason, Trades: tradesOf(fresh), Gap: gap}, "", market.Append, reason)
		}
		show := func(reason model.UpdateReason) bool {
			return out.send(model.TradesUpdate{Reason: reason, Trades: tradesOf(sent), Gap: reason == model.UpdateReasonResync}, "", market.Append, reason)
		}
		return accountFollower(reader, out.stage, &last, func(s feed.State, items feed.Items) (owed model.UpdateReason, wanted bool) {
			fills, gap = append(fills, items.Trades...), gap || items.Gap
			reason, wanted := last.reason(s, len(fills) == 0 && !gap)
			switch {
			case !wanted:
				return "", true
			case reason == model.UpdateReasonInitial, reason == model.UpdateReasonResync:
				return reason, true
			}
			last.note(s)
			trades, missing := fills, gap
			fills, gap = nil, false
			return "", send(reason, trades, missing)
		}, func(ctx context.Context) (func(model.UpdateReason) (bool, error), error) {
			// What was remembered may lack trades that the stream told of before it was followed.
			read, err := r.reads(market.WithFresh(ctx)).Trades(a, market.TradeQuery{Limit: maxInitialTrades})
			return func(reason model.UpdateReason) (bool, error) {
				trades := slices.Clone(read.Value.Trades)
				slices.Reverse(trades) // oldest first
				missing := seen.len() > 0 && len(trades) > 0 && !slices.ContainsFunc(trades, func(t market.Trade) bool { return seen.has(t.Key()) })
				for _, t := range fills { // those that the venue's answer does not know yet
					if !slices.ContainsFunc(trades, func(known market.Trade) bool { return known.Key() == t.Key() }) {
						trades = append(trades, t)
					}
				}
				fills, gap = nil, false
				return send(reason, trades, missing), nil
			}, err
		}, show).run(ctx)
	}), nil
}

// recent remembers the last keys that it was given.
type recent struct {
	keys map[string]bool
	ring []string
	next int
}

func newRecent(size int) *recent {
	return &recent{keys: make(map[string]bool, size), ring: make([]string, size)}
}

// add reports whether a key is new.
func (r *recent) add(key string) bool {
	if r.keys[key] {
		return false
	}
	delete(r.keys, r.ring[r.next])
	r.ring[r.next] = key
	r.next = (r.next + 1) % len(r.ring)
	r.keys[key] = true
	return true
}

func (r *recent) len() int { return len(r.keys) }

func (r *recent) has(key string) bool { return r.keys[key] }

// livePortfolio is what a subscription has sent of an account's positions.
type livePortfolio struct {
	resolver *Resolver
	address  market.Address
	basis    market.PriceBasis
	account  *feed.Watch // nil without room on the stream
	reader   *feed.Reader
	last     shown
	// prices are the watches of the tokens that are held.
	prices map[string]*feed.Watch

	positions  []market.Position
	quotes     []market.Quotes
	valuations map[string]*market.Valuation
	summary    *market.Portfolio
	held       market.Meta
	out        *outlet[model.PortfolioUpdate]
}

func (r *Resolver) subscriptionPortfolioChanged(ctx context.Context, a market.Address, basis *market.PriceBasis, maxPerSecond *int) (<-chan model.PortfolioUpdate, error) {
	if err := identified(ctx); err != nil {
		return nil, err
	}
	n := or(maxPerSecond, 2)
	every, err := interval(&n, 20)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, func(out *outlet[model.PortfolioUpdate]) error {
		reader := r.Feed.NewReaderFor(market.CallerFrom(ctx))
		defer reader.Close()
		p := &livePortfolio{resolver: r, address: a, basis: or(basis, ""), reader: reader, prices: make(map[string]*feed.Watch), out: out}
		p.account, _ = r.watchAccount(ctx, reader, a) // without room it is read over REST
		return p.run(ctx, every)
	}), nil
}

// run sends the present state and then what changes, at most once in every.
func (p *livePortfolio) run(ctx context.Context, every time.Duration) error {
	settle, poll, pace := time.NewTimer(settleAfter), time.NewTicker(pollEvery), time.NewTimer(0)
	defer settle.Stop()
	defer poll.Stop()
	defer pace.Stop()
	<-pace.C
	var due time.Time
	for {
		settled := false
		select {
		case <-ctx.Done():
			return nil
		case <-p.reader.Changed():
			p.reader.Take()
		case <-settle.C:
			settled = true
		case <-poll.C:
			settled = true
		case <-pace.C:
		case <-p.out.waiting():
			if wanted, err := p.out.show(p.present); !wanted || err != nil {
				return err
			}
			continue
		}
		if !p.last.sent && !settled && !p.accountKnown() {
			continue // the first state is on its way
		}
		if left := time.Until(due); left > 0 {
			pace.Reset(left)
			continue
		}
		due = time.Now().Add(every)
		wanted, err := p.update(ctx)
		if err != nil || !wanted {
			return err
		}
	}
}

// accountState returns what the stream says of the account; ok is false where that is nothing of its positions.
func (p *livePortfolio) accountState() (s feed.State, ok bool, err error) {
	if p.account == nil {
		return s, false, nil
	}
	s, err = p.account.State()
	return s, err == nil && s.Known && s.Account != nil && s.Account.Positions != nil, err
}

func (p *livePortfolio) accountKnown() bool {
	_, ok, err := p.accountState()
	return ok || err != nil
}

// update sends an event if there is something to tell. All its values come from one set of prices.
func (p *livePortfolio) update(ctx context.Context) (bool, error) {
	s, streamed, err := p.accountState()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	set := p.resolver.reads(ctx)
	var positions []market.Position
	var held market.Meta
	if streamed && s.Live {
		positions, held = s.Account.Positions, s.Meta
	} else {
		read, err := readUser(ctx, &set.Positions, p.address)
		switch {
		case refused(err):
			return false, err
		case err == nil:
			positions, held = *read.Value, read.Meta
		case !p.last.sent:
			return true, nil // the next poll tries again
		default:
			return p.outdate(), nil // nothing is valued that may be out of date
		}
	}
	each := pointers(positions)
	quotes, valuations, errs := quoteEach(set, each, held, p.basis)
	for _, err := range errs {
		if err != nil {
			return true, nil // nothing is summed over a part; the next change tries again
		}
	}
	p.follow(each, quotes)
	return p.send(s, streamed, positions, quotes, valuations, held), nil
}

// outdate tells once that what was sent last may be out of date.
func (p *livePortfolio) outdate() bool {
	if p.held.Stale {
		return true
	}
	p.held.Stale, p.last.live = true, false
	sum := *p.summary
	sum.Meta.Stale = true
	p.summary = &sum
	u := model.PortfolioUpdate{Reason: model.UpdateReasonFreshness, Changed: []model.Position{}, ClosedPositionIds: []string{}, Summary: p.totals()}
	for i := range p.positions {
		key := positionKey(&p.positions[i])
		if v := p.valuations[key]; v != nil && !v.Meta.Stale {
			outdated := *v
			outdated.Meta.Stale = true
			p.valuations[key] = &outdated
			u.Changed = append(u.Changed, p.position(&p.positions[i], &p.quotes[i], &outdated, p.held))
		}
	}
	return p.out.send(u, "", market.Delta, u.Reason)
}

// present shows the portfolio as it was sent last.
func (p *livePortfolio) present(reason model.UpdateReason) (bool, error) {
	if !p.last.sent {
		return true, nil
	}
	u := model.PortfolioUpdate{Reason: reason, Changed: make([]model.Position, len(p.positions)), ClosedPositionIds: []string{}, Summary: p.totals()}
	for i := range p.positions {
		x := &p.positions[i]
		u.Changed[i] = p.position(x, &p.quotes[i], p.valuations[positionKey(x)], p.held)
	}
	return p.out.send(u, "", market.Delta, reason), nil
}

func (p *livePortfolio) totals() model.PortfolioSummary {
	return model.PortfolioSummary{Portfolio: p.summary, Address: p.address, Basis: p.basis}
}

func (p *livePortfolio) send(s feed.State, streamed bool, positions []market.Position, quotes []market.Quotes, valuations []*market.Valuation, held market.Meta) bool {
	sum := market.Sum(positions, valuations, held)
	before := make(map[string]*market.Position, len(p.positions))
	for i := range p.positions {
		before[positionKey(&p.positions[i])] = &p.positions[i]
	}
	u := model.PortfolioUpdate{Changed: []model.Position{}, ClosedPositionIds: []string{}}
	now := make(map[string]*market.Valuation, len(positions))
	var changed []int
	same := true
	for i := range positions {
		key := positionKey(&positions[i])
		now[key] = valuations[i]
		if old := before[key]; old == nil || !samePosition(old, &positions[i]) || !sameValuation(p.valuations[key], valuations[i]) {
			changed, same = append(changed, i), false
		} else if v := valuations[i]; v != nil && v.Meta.Stale != p.valuations[key].Meta.Stale {
			changed = append(changed, i)
		}
		delete(before, key)
	}
	same = same && len(before) == 0
	for _, gone := range before {
		u.ClosedPositionIds = append(u.ClosedPositionIds, model.PositionID(p.address, gone))
	}
	slices.Sort(u.ClosedPositionIds)
	state := s
	if !streamed {
		state = feed.State{Live: false, Resyncs: p.last.resyncs}
	}
	reason, wanted := p.last.reason(state, same)
	if !wanted && !same {
		reason, wanted = model.UpdateReasonChange, true // over REST, or by prices alone
	}
	if !wanted && (len(changed) > 0 || p.held.Stale && !held.Stale) {
		reason, wanted = model.UpdateReasonFreshness, true // read again over REST
	}
	if !wanted {
		return true
	}
	u.Reason = reason
	whole := reason == model.UpdateReasonInitial || reason == model.UpdateReasonResync
	for i, next := 0, 0; i < len(positions); i++ {
		is := next < len(changed) && changed[next] == i
		if is {
			next++
		}
		if is || whole {
			u.Changed = append(u.Changed, p.position(&positions[i], &quotes[i], valuations[i], held))
		}
	}
	p.positions, p.quotes, p.valuations, p.summary, p.held = positions, quotes, now, sum, held
	u.Summary = p.totals()
	if streamed {
		p.last.note(state)
	} else {
		p.last.noteREST()
	}
	return p.out.send(u, "", market.Delta, reason)
}

// position returns a position as an event shows it: with its valuation and the prices that it was made of.
func (p *livePortfolio) position(x *market.Position, q *market.Quotes, v *market.Valuation, held market.Meta) model.Position {
	out := model.Position{Position: x, Address: p.address, Meta: held, Valued: v, ValuedBy: p.basis}
	if q.Price.Value != nil {
		out.Shown = &model.Shown{Price: &model.TokenPrice{Quote: q.Price.Value, Meta: q.Price.Meta}}
	}
	return out
}

// follow watches the prices of the tokens that are held, and no others. Tokens of settled markets don't move.
func (p *livePortfolio) follow(positions []*market.Position, quotes []market.Quotes) {
	held := make(map[string]bool, len(positions))
	for i, x := range positions {
		token := x.TokenID
		if token == "" && quotes[i].Outcome != nil {
			token = quotes[i].Outcome.TokenID
		}
		if m := quotes[i].Market.Value; token == "" || m != nil && m.SettlementPrice(quotes[i].Outcome) != nil {
			continue
		}
		held[token] = true
		if w := p.prices[token]; w != nil {
			if _, err := w.State(); market.CodeOf(err) == market.CodeRateLimited { // others need the room on the stream
				w.Close()
				delete(p.prices, token)
			}
			continue
		}
		w, err := p.reader.Watch(market.Topic{Channel: market.ChannelPrices, ID: token}, nil)
		if err != nil {
			break // no room: the rest is read over REST
		}
		p.prices[token] = w
	}
	for token, w := range p.prices {
		if !held[token] {
			w.Close()
			delete(p.prices, token)
		}
	}
}

func positionKey(p *market.Position) string { return p.Key().String() }

func samePosition(a, b *market.Position) bool {
	return a.Size.Cmp(b.Size) == 0 && sameDecimal(a.AvgPrice, b.AvgPrice)
}

func sameValuation(a, b *market.Valuation) bool {
	return a == b || a != nil && b != nil && a.Basis == b.Basis && a.Price.Cmp(b.Price) == 0
}
