package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

const (
	// callPoints is what an upstream call costs; a field that shows a value costs 1.
	callPoints = 1000
	// batch is how many things one batched upstream call reads.
	batch = 40
	// accountRows is how many positions or orders an account is taken to have where nothing in the operation says so.
	accountRows = 50
	// outcomes is how many tokens a market is taken to have.
	outcomes = 2
	// maxIDs is the most ids that an argument takes.
	maxIDs = 500
	// points is how many points a price history, and how many candles, a range of days is taken to have.
	points = 100
)

// reads are things that are read of the venue.
type reads uint16

// What is read in batches comes first.
const (
	price reads = 1 << iota
	spread
	marketDetails
	// One call for each object, however many fields need it.
	book
	eventMarkets
	balance
	positions
	orders
	// history is one call for each range of days of a token.
	history
	// page is one call for each field that is selected.
	page

	batched = price | spread | marketDetails
	// allPositions are the prices and markets of all positions of an account, read to sort or to sum them.
	allPositions = 2 * (accountRows + batch - 1) / batch
)

// weight is what a field costs beside the point for its value.
type weight struct {
	// needs is what has to be read for the field of an object. Fields of one object that need the same share it.
	needs reads
	// each is what is read for each object that the field gives; by calls of their own where the argument alone is given.
	each  reads
	alone string
	// calls is the number of further upstream calls that the field takes for each object that it is a field of. Where
	// callsIf names arguments, it takes them only when one of these is given and not what it is by default.
	calls   int64
	callsIf []string
	// callsOf is the argument with the global ids of objects that are not read in batches.
	callsOf string
	// items says how many objects the field gives; the zero value is one.
	items quantity
	// page says how many items the lists have that the field's object holds.
	page quantity
	// knows is what the field's objects bring along, so that their fields need not read it.
	knows reads
}

// quantity says how many of something there are. The zero value says nothing.
type quantity struct {
	// argument is the argument that says it: by its number, or by its length where list is set, but never more than limit.
	argument string
	list     bool
	limit    int64
	// fixed is the number where there is no such argument.
	fixed int64
	// ofPage takes the number from the page of the object that the field belongs to.
	ofPage bool
	// counted takes the number from the schema.
	counted func(*ast.Schema) int64
}

func first(limit int64) quantity            { return quantity{argument: "first", limit: limit} }
func depth() quantity                       { return quantity{argument: "depth", limit: 200} }
func ids(argument string) quantity          { return quantity{argument: argument, list: true, limit: maxIDs} }
func about(n int64) quantity                { return quantity{fixed: n} }
func in(f func(*ast.Schema) int64) quantity { return quantity{counted: f} }

var ofPage = quantity{ofPage: true}

// fieldName names a field of the schema.
type fieldName struct{ typ, field string }

func (n fieldName) String() string { return n.typ + "." + n.field }

// weightsOf are the weights of a type: of its fields that cost more than the point for their value, and the names of the rest.
type weightsOf struct {
	typ   string
	costs map[string]weight
	plain string
}

// table holds the weight of every field of the schema. What is batched, and what is not, is decided in loaders and in
// internal/cache; what a field reads, in resolvers.
var table = []weightsOf{
	{"Query", map[string]weight{
		"node":          {each: marketDetails, callsOf: "id"},
		"nodes":         {each: marketDetails, callsOf: "ids", items: ids("ids")},
		"market":        {each: marketDetails, alone: "slug", knows: marketDetails},
		"markets":       {each: marketDetails, items: ids("marketIds"), knows: marketDetails},
		"event":         {each: page, knows: eventMarkets},
		"searchMarkets": {each: page, page: first(100)},
		"tokens":        {items: ids("tokenIds")},
		"tokenPrices":   {each: price, items: ids("tokenIds")},
		"spreads":       {each: spread, items: ids("tokenIds")},
	}, "user viewer token serviceStatus __schema __type"},
	{"User", map[string]weight{
		"balance":   {needs: balance},
		"positions": {needs: positions, calls: allPositions, callsIf: []string{"sort", "redeemable"}, page: first(500)},
		"orders":    {needs: orders, page: first(500)},
		"trades":    {each: page, page: first(100)},
		"history":   {each: page, page: first(100)},
		"portfolio": {needs: positions, calls: allPositions},
	}, "id address"},
	{"PortfolioSummary", map[string]weight{
		"totalValue":    {needs: balance},
		"availableCash": {needs: balance | orders},
	}, "id positionsValue costBasis unrealizedPnl unpricedPositions uncostedPositions freshness"},
	{"Position", map[string]weight{
		"redeemable": {needs: marketDetails},
		"valuation":  {needs: marketDetails | price},
		"market":     {needs: marketDetails, knows: marketDetails},
		"token":      {needs: marketDetails},
	}, "id address marketId tokenId outcome outcomeKind size avgPrice currentPrice unrealizedPnl costBasis freshness"},
	{"Order", map[string]weight{
		"market": {needs: marketDetails, knows: marketDetails},
		"token":  {needs: marketDetails},
	}, "id orderId marketId tokenId side sideRaw outcome outcomeKind price size filledSize remainingSize status statusRaw createdAt"},
	{"Trade", map[string]weight{
		"market": {needs: marketDetails, knows: marketDetails},
		"token":  {needs: marketDetails},
	}, "id tradeId marketId tokenId outcome side sideRaw price size fee timestamp transactionHash"},
	{"HistoryRecord", map[string]weight{
		"market": {needs: marketDetails, knows: marketDetails},
	}, "id kind kindRaw timestamp amount marketId tokenId outcome side price size transactionHash"},
	{"Market", map[string]weight{
		"description": {needs: marketDetails},
		"resolution":  {needs: marketDetails},
		"tokens":      {items: about(outcomes), knows: marketDetails},
	}, `id marketId slug question groupItemTitle image category tags status statusRaw acceptingOrders startsAt endsAt volume
		volume24h liquidity tickSize minOrderSize event updatedAt freshness`},
	{"Event", map[string]weight{
		"startsAt": {needs: eventMarkets},
		"endsAt":   {needs: eventMarkets},
		"volume":   {needs: eventMarkets},
		"markets":  {needs: eventMarkets, page: first(500)},
	}, "id eventId slug title"},
	{"Resolution", map[string]weight{
		"winningToken": {knows: marketDetails},
	}, "winningOutcome resolvedAt source"},
	{"Token", map[string]weight{
		"outcome":      {needs: marketDetails},
		"outcomeKind":  {needs: marketDetails},
		"winner":       {needs: marketDetails},
		"market":       {needs: marketDetails, knows: marketDetails},
		"price":        {needs: price},
		"spread":       {needs: spread},
		"orderbook":    {needs: book, page: depth()},
		"history":      {needs: history, page: about(points)},
		"recentPrices": {items: about(points)},
		"candles":      {needs: history, items: about(points)},
		"fillEstimate": {needs: book},
	}, "id tokenId"},
	{"PositionConnection", map[string]weight{"edges": {items: ofPage}, "nodes": {items: ofPage}}, "pageInfo totalCount"},
	{"OrderConnection", map[string]weight{"edges": {items: ofPage}, "nodes": {items: ofPage}}, "pageInfo totalCount"},
	{"TradeConnection", map[string]weight{"edges": {items: ofPage}, "nodes": {items: ofPage}}, "pageInfo totalCount"},
	{"HistoryConnection", map[string]weight{"edges": {items: ofPage}, "nodes": {items: ofPage}}, "pageInfo totalCount"},
	{"MarketConnection", map[string]weight{"edges": {items: ofPage}, "nodes": {items: ofPage}}, "pageInfo totalCount"},
	{"Orderbook", map[string]weight{"bids": {items: ofPage}, "asks": {items: ofPage}}, "tokenId token spread midpoint sequence hash freshness"},
	{"PriceHistory", map[string]weight{"points": {items: ofPage}}, "from to freshness"},

	// A subscription costs what its first events cost: one for each id that it follows. Later ones cost no more.
	{"Subscription", map[string]weight{
		"priceChanged":     {each: price, items: ids("tokenIds"), knows: price},
		"orderbookChanged": {each: book, page: depth(), knows: book},
		"marketChanged":    {each: marketDetails, items: ids("marketIds")},
		"tradesAdded":      {items: ids("tokenIds"), page: about(accountRows)},
		"portfolioChanged": {each: positions | balance | orders, calls: allPositions, page: about(accountRows)},
		"ordersChanged":    {each: orders, page: about(accountRows)},
		"userTradesAdded":  {each: page, page: about(accountRows)},
		"balanceChanged":   {each: balance},
	}, "streamStatusChanged"},
	{"PriceUpdate", map[string]weight{"token": {knows: price}}, "reason price previousPrice"},
	{"OrderbookUpdate", map[string]weight{
		"token": {knows: book},
		"bids":  {items: ofPage},
		"asks":  {items: ofPage},
		"book":  {page: ofPage},
	}, "kind reason tokenId sequence previousSequence"},
	{"MarketUpdate", map[string]weight{"market": {knows: marketDetails}}, "reason change"},
	{"TradesUpdate", map[string]weight{"trades": {items: ofPage}}, "reason gap"},
	{"PortfolioUpdate", map[string]weight{"changed": {items: ofPage}}, "reason closedPositionIds summary"},
	{"OrdersUpdate", map[string]weight{"changed": {items: ofPage}}, "reason closedOrderIds"},
	{"BalanceUpdate", nil, "reason balance"},

	{"Node", nil, "id"},
	{"PageInfo", nil, "hasNextPage hasPreviousPage startCursor endCursor"},
	{"Freshness", nil, "asOf receivedAt source stale"},
	{"Balance", nil, "id portfolioValue cashBalance positionsValue totalValue freshness"},
	{"Valuation", nil, "id price basis value unrealizedPnl unrealizedPnlPercent freshness"},
	{"TokenPrice", nil, "id tokenId price basis timestamp token freshness"},
	{"Spread", nil, "id tokenId bestBid bestAsk spread midpoint basis token freshness"},
	{"OrderbookLevel", nil, "price size"},
	{"PricePoint", nil, "timestamp price volume"},
	{"Candle", nil, "start open high low close volume"},
	{"FillEstimate", nil, "averagePrice worstPrice filledSize cost slippage complete freshness"},
	{"PositionEdge", nil, "cursor node"},
	{"OrderEdge", nil, "cursor node"},
	{"TradeEdge", nil, "cursor node"},
	{"HistoryEdge", nil, "cursor node"},
	{"MarketEdge", nil, "cursor node"},
	{"ServiceStatus", nil, "version demo stream upstreamReachable throttledUntil"},
	{"StreamStatus", nil, "state since lastMessageAt connections reconnects resyncs watchedTokens"},

	{"__Schema", map[string]weight{
		"types":      {items: in(types)},
		"directives": {items: in(directives)},
	}, "description queryType mutationType subscriptionType"},
	{"__Type", map[string]weight{
		"fields":        {items: in(perType(func(d *ast.Definition) int { return len(objectFields(d)) }))},
		"inputFields":   {items: in(perType(func(d *ast.Definition) int { return len(inputFields(d)) }))},
		"enumValues":    {items: in(perType(func(d *ast.Definition) int { return len(d.EnumValues) }))},
		"interfaces":    {items: in(perType(func(d *ast.Definition) int { return len(d.Interfaces) }))},
		"possibleTypes": {items: about(1)},
	}, "kind name description specifiedByURL ofType isOneOf"},
	{"__Field", map[string]weight{"args": {items: about(1)}}, "name description type isDeprecated deprecationReason"},
	{"__Directive", map[string]weight{"args": {items: about(1)}}, "name description isRepeatable locations"},
	{"__InputValue", nil, "name description type defaultValue isDeprecated deprecationReason"},
	{"__EnumValue", nil, "name description isDeprecated deprecationReason"},
}

func types(s *ast.Schema) int64      { return int64(len(s.Types)) }
func directives(s *ast.Schema) int64 { return int64(len(s.Directives)) }

// perType counts something of all types and returns how many of it a type has, rounded up.
func perType(count func(*ast.Definition) int) func(*ast.Schema) int64 {
	return func(s *ast.Schema) int64 {
		var sum int
		for _, d := range s.Types {
			sum += count(d)
		}
		return ceilDiv(int64(sum), types(s))
	}
}

func objectFields(d *ast.Definition) ast.FieldList {
	if d.Kind != ast.Object && d.Kind != ast.Interface {
		return nil
	}
	return d.Fields
}

func inputFields(d *ast.Definition) ast.FieldList {
	if d.Kind != ast.InputObject {
		return nil
	}
	return d.Fields
}

// weigh makes a map of the table and holds it against a schema.
func weigh(schema *ast.Schema) (map[fieldName]*weight, error) {
	weights := map[fieldName]*weight{}
	var wrong []string
	add := func(name fieldName, w weight) {
		if weights[name] != nil {
			wrong = append(wrong, name.String()+" has two weights")
		}
		for _, q := range []*quantity{&w.items, &w.page} {
			if q.counted != nil {
				q.fixed = q.counted(schema)
			}
		}
		weights[name] = &w
	}
	for _, of := range table {
		for _, field := range strings.Fields(of.plain) {
			add(fieldName{of.typ, field}, weight{})
		}
		for _, field := range slices.Sorted(maps.Keys(of.costs)) {
			add(fieldName{of.typ, field}, of.costs[field])
		}
	}
	for name, w := range weights {
		d := schema.Types[name.typ]
		if d == nil || d.Fields.ForName(name.field) == nil {
			wrong = append(wrong, "the schema has no "+name.String())
			continue
		}
		arguments := d.Fields.ForName(name.field).Arguments
		for _, argument := range append([]string{w.items.argument, w.page.argument, w.callsOf, w.alone}, w.callsIf...) {
			if argument != "" && arguments.ForName(argument) == nil {
				wrong = append(wrong, fmt.Sprintf("%s has no argument %s", name, argument))
			}
		}
	}
	for _, d := range schema.Types {
		for _, f := range objectFields(d) {
			if name := (fieldName{d.Name, f.Name}); weights[name] == nil {
				wrong = append(wrong, name.String()+" has no weight")
			}
		}
	}
	if wrong != nil {
		slices.Sort(wrong)
		return nil, fmt.Errorf("the table of weights does not fit the schema: %s", strings.Join(wrong, "; "))
	}
	return weights, nil
}
