package limits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/internal/market"
)

const (
	// callPoints is the cost of a read that needs its own call to the venue. For comparison, a field that returns a value costs 1
	// point.
	callPoints = 1000
	// keyPoints is the cost of an id that shares a call with other ids. It assumes 25 ids in a call. 25 of the longest ids, with 78
	// bytes each, fit into a URL of 2 KiB.
	keyPoints = callPoints / 25
	// accountRows is the assumed length of a list of trades, orders or positions in the event of a subscription.
	accountRows = 50
	// outcomes is the assumed number of tokens of a market.
	outcomes = 2
	// legs is the assumed number of venues of a question.
	legs = 2
	// matches is the assumed number of markets of an event that match a search.
	matches = 5
	// descriptionPoints is the cost of a market's description. A description is about as long as 20 other values.
	descriptionPoints = 20
	maxIDs            = 500
	// samples is the assumed length of a price history, of a list of candles, and of the list of categories.
	samples = 100
)

// reads is a set of kinds of reads from the venue.
type reads uint16

// For the kinds price, spread and details, one call reads several ids. For all other kinds, each id needs its own call.
const (
	price reads = 1 << iota
	spread
	details
	book
	eventMarkets
	balance
	positions
	orders
	// lastDay is a token's price history of the last 24 hours.
	lastDay
	// listPage is the read of one page of a list. Each field that needs listPage reads its own page.
	listPage
)

func (r reads) points() (sum int64) {
	for kind := price; kind <= listPage; kind <<= 1 {
		switch {
		case r&kind == 0:
		case kind <= details:
			sum += keyPoints
		default:
			sum += callPoints
		}
	}
	return sum
}

// weight is the cost of a field in addition to the point for its value.
type weight struct {
	// needs are the reads that the field causes once for its object. Fields of one object share all these reads except listPage.
	needs reads
	// calls is the number of venues of which each has the reads in needs. The zero value means one venue.
	calls quantity
	// each are the reads for every object that the field returns.
	each reads
	// items is the number of objects that the field returns. The zero value means one object. For a long text, items is the number
	// of ordinary values that are together as long.
	items quantity
	// pageSize is the number of items of those fields of the returned objects that have quantity.ofPage, such as the nodes and edges
	// of a connection.
	pageSize quantity
	// knows are the reads that the fields of the returned objects no longer need, because this field has already read the values. If
	// passes is set, they also no longer need the reads of the object that has the field.
	knows  reads
	passes bool
}

// quantity is a number of items. The zero value means that no number is set. A Plan then counts one item.
type quantity struct {
	// argument is the name of the argument that determines the quantity. If list is set, the quantity is the length of the argument.
	// Otherwise it is the value of the argument. The quantity is at most limit.
	argument string
	list     bool
	limit    int64
	// fixed is the quantity if argument is empty.
	fixed int64
	// ofPage means that the quantity is weight.pageSize of the parent field.
	ofPage bool
}

func first(limit int64) quantity   { return quantity{argument: "first", limit: limit} }
func depth() quantity              { return quantity{argument: "depth", limit: 200} }
func ids(argument string) quantity { return quantity{argument: argument, list: true, limit: maxIDs} }
func about(n int64) quantity       { return quantity{fixed: n} }

var (
	ofPage = quantity{ofPage: true}
	venues = quantity{argument: "venues", list: true, limit: market.MaxVenues}
)

// table contains the weights of fields. A field without a weight costs 1 point, causes no call and returns no list of objects.
var table = map[string]weight{
	"Query.node":          {needs: details},
	"Query.nodes":         {each: details, items: ids("ids")},
	"Query.market":        {needs: details, knows: details},
	"Query.markets":       {each: details, items: ids("marketIds"), knows: details},
	"Query.event":         {needs: listPage, knows: eventMarkets},
	"Query.searchMarkets": {needs: listPage, calls: venues, pageSize: first(100)},
	"Query.searchEvents":  {needs: listPage, calls: venues, pageSize: first(100)},
	"Query.categories":    {needs: listPage, items: about(samples)},
	"Query.tokens":        {items: ids("tokenIds")},
	"Query.tokenPrices":   {each: price, items: ids("tokenIds")},
	"Query.spreads":       {each: spread, items: ids("tokenIds")},

	"User.balance":   {needs: balance},
	"User.positions": {needs: positions, pageSize: first(500)},
	"User.orders":    {needs: orders, pageSize: first(500)},
	"User.trades":    {needs: listPage, pageSize: first(100)},
	"User.history":   {needs: listPage, pageSize: first(100)},
	"User.portfolio": {needs: positions},

	"PortfolioSummary.totalValue":    {needs: balance},
	"PortfolioSummary.availableCash": {needs: balance | orders},

	"Position.redeemable":  {needs: details},
	"Position.valuation":   {needs: details | price},
	"Position.market":      {needs: details, knows: details},
	"Position.token":       {needs: details},
	"Order.market":         {needs: details, knows: details},
	"Order.token":          {needs: details},
	"Trade.market":         {needs: details, knows: details},
	"Trade.token":          {needs: details},
	"HistoryRecord.market": {needs: details, knows: details},

	"Market.description":      {needs: details, items: about(descriptionPoints)},
	"Market.resolution":       {needs: details},
	"Market.trades":           {needs: listPage, pageSize: first(100)},
	"Market.tokens":           {items: about(outcomes), knows: details},
	"Market.token":            {knows: details},
	"Resolution.winningToken": {knows: details},
	"Event.startsAt":          {needs: eventMarkets},
	"Event.endsAt":            {needs: eventMarkets},
	"Event.volume":            {needs: eventMarkets},
	"Event.volume24h":         {needs: eventMarkets},
	"Event.status":            {needs: eventMarkets},
	"Event.image":             {needs: eventMarkets},
	"Event.description":       {needs: eventMarkets, items: about(descriptionPoints)},
	"Event.markets":           {needs: eventMarkets, pageSize: first(500)},

	"Token.outcome":      {needs: details},
	"Token.outcomeKind":  {needs: details},
	"Token.winner":       {needs: details},
	"Token.market":       {needs: details, knows: details},
	"Token.price":        {needs: price},
	"Token.spread":       {needs: spread},
	"Token.orderbook":    {needs: book, pageSize: depth()},
	"Token.fillEstimate": {needs: book},
	"Token.history":      {needs: listPage, pageSize: about(samples)},
	"Token.candles":      {needs: listPage, items: about(samples)},
	"Token.recentPrices": {items: about(samples)},
	"Token.trades":       {needs: details | listPage, pageSize: first(100)},
	"Token.sparkline":    {needs: lastDay, items: quantity{argument: "points", limit: 100}},
	"Token.change24h":    {needs: price | lastDay},
	"Token.price24hAgo":  {needs: lastDay},

	"Query.questions":        {pageSize: first(500)},
	"Market.questions":       {items: about(1)},
	"Token.questions":        {items: about(1)},
	"Question.legs":          {items: about(legs), passes: true},
	"Question.comparable":    {needs: details | book, calls: about(legs)},
	"Question.reasons":       {needs: details | book, calls: about(legs), items: about(legs)},
	"Question.best":          {needs: details | book, calls: about(legs)},
	"Question.spread":        {needs: details | book, calls: about(legs)},
	"Question.orderbook":     {needs: details | book, calls: about(legs), pageSize: depth()},
	"QuestionLeg.token":      {passes: true},
	"QuestionLeg.market":     {needs: details, knows: details},
	"QuestionLeg.rules":      {needs: details},
	"QuestionOrderbook.bids": {items: ofPage},
	"QuestionOrderbook.asks": {items: ofPage},

	"QuestionConnection.edges": {items: ofPage},
	"QuestionConnection.nodes": {items: ofPage},
	"PositionConnection.edges": {items: ofPage},
	"PositionConnection.nodes": {items: ofPage},
	"OrderConnection.edges":    {items: ofPage},
	"OrderConnection.nodes":    {items: ofPage},
	"TradeConnection.edges":    {items: ofPage},
	"TradeConnection.nodes":    {items: ofPage},
	"HistoryConnection.edges":  {items: ofPage},
	"HistoryConnection.nodes":  {items: ofPage},
	"MarketConnection.edges":   {items: ofPage},
	"MarketConnection.nodes":   {items: ofPage},
	"EventConnection.edges":    {items: ofPage},
	"EventConnection.nodes":    {items: ofPage},
	"EventEdge.matches":        {items: about(matches), knows: details},
	"Orderbook.bids":           {items: ofPage},
	"Orderbook.asks":           {items: ofPage},
	"PriceHistory.points":      {items: ofPage},

	// A subscription costs as much as its first events. A subscription to a list of ids has a first event for each id. But
	// pricesChanged has one first event for all ids.
	"Subscription.priceChanged":     {each: price, items: ids("tokenIds"), knows: price},
	"Subscription.pricesChanged":    {pageSize: ids("tokenIds")},
	"Subscription.orderbookChanged": {needs: book, pageSize: depth(), knows: book},
	"Subscription.marketChanged":    {each: details, items: ids("marketIds")},
	"Subscription.tradesAdded":      {each: details | listPage, items: ids("tokenIds"), pageSize: about(accountRows)},
	"Subscription.portfolioChanged": {needs: positions | balance | orders, pageSize: about(accountRows)},
	"Subscription.ordersChanged":    {needs: orders, pageSize: about(accountRows)},
	"Subscription.userTradesAdded":  {needs: listPage, pageSize: about(accountRows)},
	"Subscription.balanceChanged":   {needs: balance},
	"Subscription.questionChanged":  {needs: details | book, calls: about(legs)},
	"QuestionUpdate.question":       {knows: details | book},
	"PriceUpdate.token":             {knows: price},
	"PricesUpdate.prices":           {each: price, items: ofPage, knows: price},
	"OrderbookUpdate.token":         {knows: book},
	"OrderbookUpdate.bids":          {items: ofPage},
	"OrderbookUpdate.asks":          {items: ofPage},
	"OrderbookUpdate.book":          {pageSize: ofPage},
	"MarketUpdate.market":           {knows: details},
	"TradesUpdate.trades":           {items: ofPage},
	"PortfolioUpdate.changed":       {items: ofPage},
	"OrdersUpdate.changed":          {items: ofPage},

	// Only the schema of a subgraph has this field.
	federated: {each: details, items: ids("representations")},

	"ServiceStatus.venues": {items: about(2)},

	// These are the average lengths of the lists of introspection.
	"__Schema.types":       {items: about(80)},
	"__Schema.directives":  {items: about(10)},
	"__Type.fields":        {items: about(5)},
	"__Type.inputFields":   {items: about(1)},
	"__Type.enumValues":    {items: about(1)},
	"__Type.interfaces":    {items: about(1)},
	"__Type.possibleTypes": {items: about(1)},
	"__Field.args":         {items: about(1)},
	"__Directive.args":     {items: about(1)},
}

// federated is the field that returns the entities of a subgraph.
const federated = "Query._entities"

// MayCall reports whether the weight of a field, such as Query.market, includes reads from the venue.
func MayCall(field string) bool { return table[field].needs|table[field].each != 0 }

// checkWeights returns an error if the table names a field or an argument that the schema does not have. It also returns an error if
// a field with a list of objects has no weight.
func checkWeights(schema *ast.Schema) error {
	var wrong []string
	known := map[string]bool{}
	for _, d := range schema.Types {
		if d.Kind != ast.Object && d.Kind != ast.Interface {
			continue
		}
		for _, f := range d.Fields {
			name := d.Name + "." + f.Name
			w, ok := table[name]
			known[name] = true
			for _, argument := range []string{w.items.argument, w.pageSize.argument, w.calls.argument} {
				if argument != "" && f.Arguments.ForName(argument) == nil {
					wrong = append(wrong, fmt.Sprintf("%s has no argument %s", name, argument))
				}
			}
			if to := schema.Types[f.Type.Name()]; !ok && f.Type.Elem != nil && (to.Kind == ast.Object || to.Kind == ast.Interface) {
				wrong = append(wrong, name+" gives a list and has no weight")
			}
		}
	}
	for name := range table {
		if !known[name] && name != federated {
			wrong = append(wrong, "the schema has no "+name)
		}
	}
	if wrong != nil {
		slices.Sort(wrong)
		return fmt.Errorf("the table of weights does not fit the schema: %s", strings.Join(wrong, "; "))
	}
	return nil
}
