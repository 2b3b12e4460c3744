package app

import (
	"cmp"
	"slices"
	"time"

	"oddsgraph/app/pairs"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

// demoQuestions returns three questions on the first two venues, if both are embedded and show the same events: an EXACT one, a NEAR
// one, for which the second venue gets other rules, and an EXACT one whose rules the second venue changes later. Otherwise it returns
// nil.
func demoQuestions(units []*unit) (*questions.Set, error) {
	if len(units) < 2 || units[0].demo == nil || units[1].demo == nil {
		return nil, nil
	}
	a, b := units[0].demo, units[1].demo
	markets := sharedMarkets(a, b)
	if len(markets) < 3 {
		return nil, nil
	}
	exact, near, changing := markets[0], markets[1], markets[2]
	text := near.Description + " If nothing is published within 7 days after that, the market resolves to NO."
	if err := b.Venue.Reword(near.MarketID, text); err != nil {
		return nil, err
	}
	b.newRules = func() error {
		return b.Venue.Reword(changing.MarketID, changing.Description+" Clarified: what is published after the end of trading does not count.")
	}
	entry := func(id string, match questions.Match, m demo.Market, rules string, differences ...string) pairs.Entry {
		return pairs.Entry{
			ID: id, Title: m.Question, Match: &match, Differences: append([]string{}, differences...),
			CheckedAt: market.DateOf(units[0].started).String(), CheckedBy: "the demo", Legs: []pairs.EntryLeg{
				{Token: a.engine.ID(m.TokenIDs[0]), RulesSHA256: questions.RulesHash(m.Description), TakerFeeRate: takerFeeRates[units[0].cfg.Demo.Driver]},
				{Token: market.Qualify(units[1].name, b.engine.ID(m.TokenIDs[0])), RulesSHA256: questions.RulesHash(rules), TakerFeeRate: takerFeeRates[units[1].cfg.Demo.Driver]},
			},
		}
	}
	file := pairs.File(
		entry("demo-exact", questions.Exact, exact, exact.Description),
		entry("demo-near", questions.Near, near, text, title(units[1].cfg)+" resolves to NO if nothing is published within 7 days after the end; "+title(units[0].cfg)+" waits"),
		entry("demo-new-rules", questions.Exact, changing, changing.Description),
	)
	return questions.Parse(file, questionVenues(units[0].cfg))
}

// sharedMarkets returns open markets with a YES and a NO that both venues show with a book of two sides, the most legible first: those
// that no automatic change concerns, then those with much liquidity.
func sharedMarkets(a, b *demoVenue) []demo.Market {
	held := map[string]bool{} // the venues spare the markets of the smallest account
	for _, p := range a.Venue.Positions(demo.Accounts()[0].Address) {
		held[p.MarketID] = true
	}
	markets := slices.DeleteFunc(a.Venue.Markets(), func(m demo.Market) bool {
		q, _ := a.Venue.Quote(m.TokenIDs[0])
		return !m.Binary || m.Status != "OPEN" || m.Quiet || q.Price < 1000 || q.Price > 9000 || !a.shows(m.TokenIDs[0]) || !b.shows(m.TokenIDs[0])
	})
	slices.SortStableFunc(markets, func(x, y demo.Market) int {
		if held[x.MarketID] != held[y.MarketID] {
			return map[bool]int{true: -1, false: 1}[held[x.MarketID]]
		}
		return cmp.Compare(y.Liquidity, x.Liquidity)
	})
	return markets
}

// shows reports whether the dialect names the outcomes of a market Yes and No, and shows both sides of its book.
func (d *demoVenue) shows(tokenID string) bool {
	if d.Polymarket == nil {
		return true
	}
	id := d.Polymarket.ID(tokenID)
	book, _ := d.Polymarket.Book(id)
	return d.Polymarket.Labels(id)[0] == "Yes" && len(book.Bids) > 0 && len(book.Asks) > 0
}

// takerFeeRates are the rates that simulated venues document.
var takerFeeRates = map[string]string{"kalshi": "0.07", "polymarket": "0"}

// rulesChange is the time after which the second venue changes the rules of a demo question.
const rulesChange = time.Minute
