package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"oddsgraph/bench/subscribers"
)

const (
	listedTokens = 500 // tokens from which the lists are made
	listEvents   = 2   // events per second for each list
	listDocument = `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) { reason token { tokenId } price { price basis timestamp freshness { source stale } } previousPrice } }`
)

// subscribeLists has n clients subscribe to different lists of tokens at oddsgraph, and n clients listen to the program broadcast.
// In each round the prices of some tokens move once. Afterwards broadcast sends its clients about as many messages as oddsgraph
// sent. These are copies of one message from oddsgraph, with different prices.
func subscribeLists(ctx context.Context, b *builds, o options, n int) (*crowd, error) {
	t, err := newDeliveryLab(ctx, b, o)
	defer t.stop()
	if err != nil {
		return nil, err
	}
	l, err := t.venue.list(ctx, 1)
	if err != nil {
		return nil, err
	}
	var markets []listedMarket
	var tokens []string
	for _, m := range l.open[:min(listedTokens, len(l.open))] { // one token per market: the prices of a market move together
		markets, tokens = append(markets, m), append(tokens, m.Outcomes[0].TokenID)
	}
	ours, theirs, err := t.audiences(ctx, n, listDocument, tokens...)
	if err != nil {
		return nil, err
	}
	defer theirs.stop()
	defer ours.stop()
	events := max(o.events*listEvents/changesPerSecond, 1) // a round lasts as long as a round with one token
	for round := range o.rounds {
		moves, err := t.venue.moveEach(markets[:min(events*len(markets)/subscribers.ListLength, len(markets))], round)
		if err != nil {
			return nil, err
		}
		moves.Every = time.Second * subscribers.ListLength / time.Duration(listEvents*len(markets))
		message, err := ours.deliver(ctx, moves)
		if err != nil {
			return nil, err
		}
		same := subscribers.Order{URL: t.bare.url() + "/broadcast", Every: time.Second / listEvents}
		for i := range events {
			same.Prices = append(same.Prices, 1000+i)
		}
		same.Bodies = copiesOf(message, same.Prices)
		if _, err := theirs.deliver(ctx, same); err != nil {
			return nil, err
		}
	}
	return &crowd{subscribers: n, lists: true, servers: []*serverDeliveries{theirs.serverDeliveries, ours.serverDeliveries}}, errors.Join(ours.stop(), theirs.stop())
}

// moveEach returns an order that moves one token of each market by one tick in even rounds, and back in odd rounds.
func (v venue) moveEach(markets []listedMarket, round int) (o subscribers.Order, err error) {
	o.URL = v.url + "/__control/price"
	for _, m := range markets {
		tick, err := fixed(m.TickSize.String())
		if err != nil {
			return o, err
		}
		now, err := fixed(m.Outcomes[0].Price.String())
		if err != nil {
			return o, err
		}
		if round%2 == 0 {
			if now += tick; now >= 10_000 {
				now -= 2 * tick
			}
		}
		o.Tokens, o.Prices = append(o.Tokens, m.Outcomes[0].TokenID), append(o.Prices, now)
		o.Bodies = append(o.Bodies, string(setPrice(m.Outcomes[0].TokenID, now)))
	}
	return o, nil
}

// copiesOf returns one copy of the message for each price.
func copiesOf(message string, prices []int) (messages []string) {
	for _, p := range prices {
		messages = append(messages, statedPrice.ReplaceAllString(message, fmt.Sprintf(`"price":{"price":"%d.%04d"`, p/10_000, p%10_000)))
	}
	return messages
}

// title returns the number of subscribers, and whether they subscribe to lists.
func (c *crowd) title() string {
	if c.lists {
		return fmt.Sprintf("%d, lists", c.subscribers)
	}
	return strconv.Itoa(c.subscribers)
}

// benchmark returns the name of the crowd's benchmark.
func (c *crowd) benchmark() string {
	if c.lists {
		return "DeliverLists"
	}
	return "Deliver"
}
