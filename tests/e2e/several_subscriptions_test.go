package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// TestSubscriptionsToSeveralVenuesEqualOne does what TestSeveralVenuesEqualOne does, for the events of subscriptions.
func TestSubscriptionsToSeveralVenuesEqualOne(t *testing.T) {
	tool.CheckTier(t)
	for _, driver := range []string{"generic", "polymarket", "kalshi"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { compareSubscriptions(t, startTrio(t, driver)) })
		})
	}
}

func compareSubscriptions(t *testing.T, w *trio) {
	time.Sleep(10 * time.Second) // the streams open
	engine := w.alone.Demo.Venue
	var tokens []demo.Token
	for _, token := range engine.Tokens() {
		quote, _ := engine.Quote(token.TokenID)
		if token.Status == "OPEN" && token.Outcome == "YES" && quote.BestBid > 2000 && quote.BestAsk > 0 && len(tokens) < 3 && !strings.Contains(token.Slug, "minutes") {
			tokens = append(tokens, token)
		}
	}
	idOf := func(id string) string {
		if simulated := w.alone.simulatedID(id); simulated != "" {
			return own + simulated
		}
		return own + id
	}
	ids, markets := []string{}, []string{}
	for _, token := range tokens {
		ids, markets = append(ids, idOf(token.TokenID)), append(markets, idOf(token.MarketID))
	}
	subscriptions := map[string]vars{
		subPrices: {"ids": ids}, subPriceLists: {"ids": ids}, subBook: {"id": ids[0]}, subMarkets: {"ids": markets}, subTrades: {"ids": ids},
	}
	var received [3]map[string]*events
	var states [3]map[string]map[string]string
	for i, s := range []*service{w.alone, w.further, w.first} {
		transport := &http.Transport{DialContext: s.Server.Listener.(*pipes).dial}
		s.client.Transport = transport
		t.Cleanup(transport.CloseIdleConnections)
		received[i], states[i] = map[string]*events{}, map[string]map[string]string{}
		for query, variables := range subscriptions {
			states[i][query] = map[string]string{}
			text := w.forAlone(asJSON(variables))
			if s == w.further {
				text = w.forFurther(asJSON(variables))
			}
			var sent vars
			decode(t, text, &sent)
			time.Sleep(2 * time.Second) // the simulator of Kalshi has a limit
			received[i][query] = s.dial(t, anonymous).subscribe(t, ageless.ReplaceAllString(query, ""), sent)
		}
	}
	compare := func(step string) {
		t.Helper()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for query := range subscriptions {
			var texts [3]string
			for i := range received {
				w.take(received[i][query], i == 1, states[i][query])
				texts[i] = asJSON(states[i][query])
			}
			if texts[0] != texts[1] || texts[0] != texts[2] {
				t.Errorf("%s, %s: got %s or, as the first of two, %s", step, strings.Fields(query)[0], difference(texts[0], texts[1]), difference(texts[0], texts[2]))
			}
			if step == "start" && !strings.Contains(query, "tradesAdded") && texts[0] == "{}" {
				t.Errorf("%s: got no event at the start", query)
			}
		}
	}
	compare("start")
	for step := range 5 {
		token := tokens[step%len(tokens)]
		w.alone.move(t, token.TokenID)
		if err := engine.Trade(addressOf3, token.TokenID, demo.Buy, demo.Size(500)); err != nil {
			t.Fatal(err)
		}
		compare(fmt.Sprint("step ", step))
	}
	if err := engine.SetStatus(tokens[0].MarketID, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	compare("close")
}

// ageless matches what the subscriptions do not select here: it depends on when the stream of a service is ready, and on how many changes
// are in one event.
var ageless = regexp.MustCompile(`freshness \{[^}]*\}|previousPrice|sequence previousSequence|orderbook\(depth: 200\) \{ sequence \}|\bsequence\b|\bgap\b`)

// take applies the events that have come to the state of a client: the last value of each token and each market, and all trades.
func (w *trio) take(e *events, further bool, state map[string]string) {
	for len(e.came) > 0 {
		ev := <-e.came
		var ids []string
		data := w.plain(ev.data, "", further, &ids)
		for _, v := range append(list(data, "pricesChanged.prices"), list(data, "tradesAdded.trades")...) {
			state[text(v, "token.tokenId")+text(v, "tradeId")] = asJSON(at(v, "price"))
		}
		for _, field := range []string{"priceChanged.price", "orderbookChanged.book", "marketChanged.market"} {
			if v := at(data, field); v != nil {
				state[field+text(v, "tokenId")+text(v, "marketId")] = asJSON(v)
			}
		}
		for _, err := range ev.errors {
			state[err.String()] = namesVenue.ReplaceAllString(err.Message, "")
		}
	}
}
