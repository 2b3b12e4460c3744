package guard

import (
	"math"
	"testing"
)

// TestEachFieldAlone asks for one field at a time, so that no other field of the document pays for what it reads.
func TestEachFieldAlone(t *testing.T) {
	const account = `(address:"0x2222222222222222222222222222222222222222")`
	user := func(selection string) string { return `{user` + account + `{` + selection + `}}` }
	positions := func(field string) string { return user(`positions(first:3){nodes{` + field + `}}`) }
	orders := func(field string) string { return user(`orders(first:3){nodes{` + field + `}}`) }
	trades := func(field string) string { return user(`trades(first:3){nodes{` + field + `}}`) }
	token := func(field string) string { return `{token(tokenId:"1"){` + field + `}}` }
	market := func(field string) string { return `{searchMarkets(first:3){nodes{` + field + `}}}` }
	event := func(field string) string { return `{markets(marketIds:["1","2","3"]){event{` + field + `}}}` }
	g := guarding(t, func(l *Limits) { l.Cost = math.MaxInt64 })
	for text, calls := range map[string]int64{
		// What a token shows beside its id.
		token(`outcome`):           1,
		token(`outcomeKind`):       1,
		token(`winner`):            1,
		token(`market{id}`):        1,
		token(`price{price}`):      1,
		token(`spread{id}`):        1,
		token(`orderbook{spread}`): 1,
		token(`fillEstimate(side:BUY,size:1){complete}`): 1,
		token(`history{from}`):                           1,
		token(`candles{open}`):                           1,
		token(`recentPrices{price}`):                     0,
		`{spreads(tokenIds:["1","2"]){spread}}`:          1,
		`{tokenPrices(tokenIds:["1","2"]){price}}`:       1,

		// One call for the list, and one for the markets of its rows.
		positions(`size`):                                 1,
		positions(`redeemable`):                           2,
		positions(`market{question}`):                     2,
		positions(`token{tokenId}`):                       2,
		positions(`valuation{value}`):                     3,
		orders(`price`):                                   1,
		orders(`market{question}`):                        2,
		orders(`token{tokenId}`):                          2,
		trades(`price`):                                   1,
		trades(`market{question}`):                        2,
		trades(`token{tokenId}`):                          2,
		user(`history(first:3){nodes{amount}}`):           1,
		user(`history(first:3){nodes{market{question}}}`): 2,
		user(`balance{totalValue}`):                       1,
		user(`portfolio{costBasis}`):                      1 + allPositions,
		user(`portfolio{totalValue}`):                     2 + allPositions,
		user(`portfolio{availableCash}`):                  3 + allPositions,

		// A search brings summaries.
		market(`question`):           1,
		market(`description`):        2,
		market(`resolution{source}`): 2,
		market(`tokens{outcome}`):    1,

		// A market names its event; the rest takes a call for each event.
		event(`title`):                       1,
		event(`startsAt`):                    4,
		event(`endsAt`):                      4,
		event(`volume`):                      4,
		event(`markets(first:1){nodes{id}}`): 4,

		`subscription{portfolioChanged` + account + `{reason}}`: 3 + allPositions,
		`subscription{ordersChanged` + account + `{reason}}`:    1,
		`subscription{userTradesAdded` + account + `{reason}}`:  1,
		`subscription{balanceChanged` + account + `{reason}}`:   1,
	} {
		cost, err := priceOf(t, g, text, "")
		if err != nil || cost.Calls != calls {
			t.Errorf("%s takes %d calls, %v; want %d", text, cost.Calls, err, calls)
		}
	}
}
