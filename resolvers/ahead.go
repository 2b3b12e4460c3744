package resolvers

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph/model"
	"oddsgraph/graph/scalar"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// Fields are executed one by one, but what they will read can be seen in the document. So whoever knows a whole list, be
// it the operation with the ids in its arguments or a resolver with the rows that it read, looks ahead: it walks the
// selection once, collects what it demands of the elements and sends for all of it in one batch per kind. The fields then
// find their values under way. Looking ahead never changes an answer; what it misses travels with the stragglers.
// Nobody sends for anything ahead of an answer that is made of what is in memory.

// A demand says what a selection will read of each object of a list.
type (
	tokenDemand struct {
		price, spread, details bool
		// depth is the greatest depth of the books; 0 for none.
		depth int
		// market is what is read of the token's market; nil for nothing.
		market *marketDemand
	}
	marketDemand struct {
		// description and resolution are what lists leave out.
		description, resolution bool
		tokens                  *tokenDemand
		event                   *eventDemand
	}
	// eventDemand is what is read of the first so many markets of an event.
	eventDemand struct {
		first   int
		markets marketDemand
	}
	// holdingDemand is what is read of the rows of an account.
	holdingDemand struct {
		details bool
		// valued tells that the best price known is read, which is none of the venue's where a market is settled.
		valued bool
		market *marketDemand
		token  *tokenDemand
	}
)

// holding is what a row of an account says of the token that it is about.
type holding struct{ marketID, tokenID, outcome string }

// market names the market of the row in the best way that is known, if any is.
func (h holding) market() (ref market.MarketRef, ok bool) {
	switch {
	case h.marketID != "":
		return byID(h.marketID), true
	case h.tokenID != "":
		return byToken(h.tokenID), true
	default:
		return ref, false
	}
}

// look is one look ahead: the demands of an operation on what is known at one time.
type look struct {
	set *loaders.Set
	op  *graphql.OperationContext

	prices, spreads []string
	books           map[int][]string
	markets         []market.MarketRef
	aroundMarkets   []chain[market.MarketRef, market.Market]
	aroundEvents    []chain[market.EventRef, market.Event]
}

// chain is what can be sent for only when others have arrived.
type chain[K, T any] struct {
	refs []K
	// then gets those that have, aligned with refs; nil for one that is not there.
	then func(next *look, arrived []*T)
}

func newLook(ctx context.Context) *look {
	return &look{set: loaders.From(ctx), op: graphql.GetOperationContext(ctx)}
}

// send sends for all that was collected, and for the rest when what it hangs on has arrived.
func (l *look) send() {
	l.set.Markets.Prefetch(l.markets)
	l.set.Prices.Prefetch(l.prices)
	l.set.Spreads.Prefetch(l.spreads)
	for _, depth := range slices.Backward(slices.Sorted(maps.Keys(l.books))) { // the deepest of a token answers for the others
		l.set.PrefetchBooks(l.books[depth], depth)
	}
	followRows(l, l.aroundMarkets, l.set.FollowMarkets)
	followRows(l, l.aroundEvents, l.set.FollowEvents)
}

// followRows sends for what chains hold when what they hang on has arrived, all of them together, so that it travels together too.
func followRows[K, T any](l *look, chains []chain[K, T], after func(refs []K, then func([]market.Result[market.Read[*T]]))) {
	if len(chains) == 0 {
		return
	}
	var refs []K
	for _, c := range chains {
		refs = append(refs, c.refs...)
	}
	after(refs, func(results []market.Result[market.Read[*T]]) {
		next := &look{set: l.set, op: l.op}
		for _, c := range chains {
			arrived := make([]*T, len(c.refs))
			for i := range arrived {
				arrived[i] = results[i].Value.Value
			}
			results = results[len(c.refs):]
			c.then(next, arrived)
		}
		next.send()
	})
}

func (l *look) collect(selection ast.SelectionSet, types ...string) []graphql.CollectedField {
	return graphql.CollectFields(l.op, selection, types)
}

// child returns the selection of the named field below a field that returns an object.
func (l *look) child(f graphql.CollectedField, name string) ast.SelectionSet {
	for _, c := range l.collect(f.Selections, f.Definition.Type.Name()) {
		if c.Name == name {
			return c.Selections
		}
	}
	return nil
}

func (l *look) demandToken(d *tokenDemand, selection ast.SelectionSet) {
	for _, f := range l.collect(selection, "Token", "Node") {
		switch f.Name {
		case "price":
			d.price = true
			l.demandToken(d, l.child(f, "token"))
		case "spread":
			d.spread = true
			l.demandToken(d, l.child(f, "token"))
		case "orderbook":
			if depth, ok := l.integer(f, "depth"); ok {
				d.depth = max(d.depth, depth)
			}
			l.demandToken(d, l.child(f, "token"))
		case "fillEstimate":
			if l.estimates(f) {
				d.depth = market.MaxBookDepth
			}
		case "outcome", "outcomeKind", "winner":
			d.details = true
		case "market":
			d.details = true
			if d.market == nil {
				d.market = &marketDemand{}
			}
			l.demandMarket(d.market, f.Selections)
		}
	}
}

// estimates tells whether the arguments of a fillEstimate are good.
func (l *look) estimates(f graphql.CollectedField) bool {
	arguments := l.arguments(f)
	side, _ := arguments["side"].(string)
	var size, amount *market.Decimal
	for name, into := range map[string]**market.Decimal{"size": &size, "amount": &amount} {
		if v := arguments[name]; v != nil {
			d, err := scalar.UnmarshalDecimal(v)
			if err != nil {
				return false
			}
			*into = &d
		}
	}
	return checkEstimate(market.OrderSide(side), size, amount) == nil
}

func (l *look) demandMarket(d *marketDemand, selection ast.SelectionSet) {
	for _, f := range l.collect(selection, "Market", "Node") {
		switch f.Name {
		case "description":
			d.description = true
		case "resolution":
			d.resolution = true
		case "tokens":
			if d.tokens == nil {
				d.tokens = &tokenDemand{}
			}
			l.demandToken(d.tokens, f.Selections)
		case "event":
			for _, c := range l.collect(f.Selections, "Event", "Node") {
				if c.Name == "markets" && l.arguments(c)["after"] == nil {
					l.demandEvent(d, c)
				}
			}
		}
	}
}

// demandEvent collects what a field demands of the markets of the event of a market.
func (l *look) demandEvent(d *marketDemand, f graphql.CollectedField) {
	e := &eventDemand{first: l.first(f)}
	if d.event != nil {
		e.first, e.markets = max(e.first, d.event.first), d.event.markets
	}
	for _, selection := range l.nodeSelections(f) {
		l.demandMarket(&e.markets, selection)
	}
	if e.first > 0 && e.markets.reads() {
		d.event = e
	}
}

// reads tells whether anything is to be read for markets that are known.
func (d *marketDemand) reads() bool {
	return d != nil && (d.description || d.resolution || d.event != nil ||
		d.tokens != nil && (d.tokens.price || d.tokens.spread || d.tokens.depth > 0 || d.tokens.market.reads()))
}

func (l *look) demandHolding(d *holdingDemand, typ string, selection ast.SelectionSet) {
	for _, f := range l.collect(selection, typ, "Node") {
		switch f.Name {
		case "market":
			d.details = true
			if d.market == nil {
				d.market = &marketDemand{}
			}
			l.demandMarket(d.market, f.Selections)
		case "token":
			if d.token == nil {
				d.token = &tokenDemand{}
			}
			l.demandToken(d.token, f.Selections)
		case "redeemable":
			d.details = true
		case "valuation":
			l.demandValuation(d, f)
		}
	}
}

func (l *look) demandValuation(d *holdingDemand, f graphql.CollectedField) {
	if d.token == nil {
		d.token = &tokenDemand{}
	}
	basis, _ := l.arguments(f)["basis"].(string)
	switch market.PriceBasis(basis) {
	case "":
		d.details, d.valued = true, true
	case market.BasisVenue, market.BasisLast:
		d.token.price = true
	case market.BasisMidpoint, market.BasisBestBid, market.BasisBestAsk:
		d.token.spread = true
	case market.BasisSettlement:
		d.details = true
	}
}

// addTokens collects what is demanded of tokens.
func (l *look) addTokens(tokens []model.Token, d *tokenDemand) {
	if d == nil {
		return
	}
	var around []market.MarketRef
	for i := range tokens {
		t := &tokens[i]
		if d.price {
			l.prices = append(l.prices, t.TokenID)
		}
		if d.spread {
			l.spreads = append(l.spreads, t.TokenID)
		}
		if d.depth > 0 {
			if l.books == nil {
				l.books = make(map[int][]string, 1)
			}
			l.books[d.depth] = append(l.books[d.depth], t.TokenID)
		}
		switch {
		case !d.details:
		case t.In == nil:
			l.markets = append(l.markets, refOf(t))
			around = append(around, refOf(t))
		default:
			l.addMarkets([]*market.Market{t.In}, d.market)
		}
	}
	l.chainMarkets(around, d.market)
}

// addMarkets collects what is demanded of markets that are known; nil ones are passed over.
func (l *look) addMarkets(markets []*market.Market, d *marketDemand) {
	if d == nil {
		return
	}
	var events []market.EventRef
	for _, m := range markets {
		if m == nil {
			continue
		}
		if ref := (market.EventRef{EventID: m.EventID}); d.event != nil && m.EventID != "" && !slices.Contains(events, ref) {
			events = append(events, ref)
		}
		if m.Summary && (d.description || d.resolution && mayBeResolved(m.Status)) {
			l.markets = append(l.markets, byID(m.MarketID))
		}
		if d.tokens != nil {
			l.addTokens(model.Market{Market: m}.Tokens(), d.tokens)
		}
	}
	l.chainEvents(events, d.event)
}

// addRefs collects what is demanded of markets that are known by name.
func (l *look) addRefs(refs []market.MarketRef, d *marketDemand) {
	l.markets = append(l.markets, refs...)
	l.chainMarkets(refs, d)
}

// chainMarkets remembers what is demanded of the tokens and events of markets that are still to arrive.
func (l *look) chainMarkets(refs []market.MarketRef, d *marketDemand) {
	if len(refs) > 0 && d != nil && (d.tokens != nil || d.event != nil) {
		l.aroundMarkets = append(l.aroundMarkets, chain[market.MarketRef, market.Market]{refs, func(next *look, markets []*market.Market) {
			next.addMarkets(markets, &marketDemand{tokens: d.tokens, event: d.event})
		}})
	}
}

// chainEvents remembers what is demanded of the markets of events that are still to arrive. Whoever shows one of them waits for
// that.
func (l *look) chainEvents(refs []market.EventRef, d *eventDemand) {
	if len(refs) > 0 {
		l.aroundEvents = append(l.aroundEvents, chain[market.EventRef, market.Event]{refs, func(next *look, events []*market.Event) {
			for _, e := range events {
				if e != nil {
					next.addMarkets(e.Markets[:min(d.first, len(e.Markets))], &d.markets)
				}
			}
		}})
	}
}

// addHoldings collects what is demanded of the rows of an account.
func (l *look) addHoldings(rows []holding, d *holdingDemand) {
	var tokens []model.Token
	var refs []market.MarketRef
	var matched chain[market.MarketRef, market.Market]
	var labels []string
	for _, h := range rows {
		ref, ok := h.market()
		if !ok {
			continue
		}
		if d.details {
			refs = append(refs, ref)
		}
		if h.tokenID != "" {
			tokens = append(tokens, model.Token{TokenID: h.tokenID, MarketID: h.marketID})
		} else if d.token != nil || d.valued {
			matched.refs, labels = append(matched.refs, ref), append(labels, h.outcome)
		}
	}
	l.addRefs(refs, d.market)
	l.addTokens(tokens, d.token)
	if d.valued {
		l.set.Markets.Prefetch(refs)
		for i := range tokens {
			if m, ok := l.set.Markets.Peek(refOf(&tokens[i])); !ok || !settled(m.Value, tokens[i].TokenID) {
				l.prices = append(l.prices, tokens[i].TokenID)
			}
		}
	}
	if len(matched.refs) > 0 {
		l.markets = append(l.markets, matched.refs...)
		matched.then = func(next *look, markets []*market.Market) {
			var tokens []model.Token
			for i, m := range markets {
				if m == nil {
					continue
				}
				if o := m.OutcomeByLabel(labels[i]); o != nil {
					tokens = append(tokens, model.Market{Market: m}.Token(o))
					if d.valued && !settled(m, o.TokenID) {
						next.prices = append(next.prices, o.TokenID)
					}
				}
			}
			next.addTokens(tokens, d.token)
		}
		l.aroundMarkets = append(l.aroundMarkets, matched)
	}
}

// settled reports whether a token is known to be worth 1 or 0.
func settled(m *market.Market, tokenID string) bool {
	return m != nil && m.SettlementPrice(m.OutcomeByToken(tokenID)) != nil
}

// aheadOf looks ahead of a connection's rows of an account, and of those that fields beside it show of the same list. rows are
// those of the page, whose size is given, and what is known of the list behind it. What was read of the page's rows is returned
// where that is done at once, see recallHoldings.
func aheadOf[T any](ctx context.Context, typ string, rows []T, page int, hold func(*T) holding) []recalled {
	if len(rows) == 0 {
		return nil
	}
	if loaders.From(ctx).InMemory() {
		return recallHoldings(ctx, rows[:page], hold)
	}
	l := newLook(ctx)
	var holdings []holding
	for _, f := range l.ofSameList(graphql.GetFieldContext(ctx)) {
		d := &holdingDemand{}
		for _, selection := range l.nodeSelections(f) {
			l.demandHolding(d, typ, selection)
		}
		n := min(l.first(f), len(rows))
		for i := len(holdings); i < n; i++ {
			holdings = append(holdings, hold(&rows[i]))
		}
		l.addHoldings(holdings[:n], d)
	}
	l.send()
	return nil
}

// ofSameList returns the fields of the same object that read the same list from the same place as the present one, which is
// among them. They differ in how much of it they show, and of what.
func (l *look) ofSameList(present *graphql.FieldContext) []graphql.CollectedField {
	list := func(f graphql.CollectedField) map[string]any {
		arguments := l.arguments(f)
		delete(arguments, "first")
		return arguments
	}
	fields := []graphql.CollectedField{present.Field}
	parent := present.Parent
	if parent == nil || parent.Field.Field == nil {
		return fields
	}
	of := list(present.Field)
	for _, f := range l.collect(parent.Field.Selections, present.Object, "Node") {
		if f.Name == present.Field.Name && f.Alias != present.Field.Alias && reflect.DeepEqual(list(f), of) {
			fields = append(fields, f)
		}
	}
	return fields
}

// first returns how many rows a connection may show.
func (l *look) first(f graphql.CollectedField) int {
	var n int64
	switch v := l.arguments(f)["first"].(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case json.Number:
		n, _ = v.Int64()
	case nil:
		n = defaultPage
	}
	if n < 1 || n > maxPage { // it is refused
		return 0
	}
	return int(n)
}

// aheadOfPortfolio looks ahead of the portfolio that is asked for beside a page of positions: what it needs of all of them
// covers what the page needs, so neither is to leave alone.
func aheadOfPortfolio(ctx context.Context, set *loaders.Set, positions []market.Position) {
	if set.InMemory() {
		return
	}
	user := graphql.GetFieldContext(ctx).Parent
	if user == nil || user.Field.Field == nil {
		return
	}
	l := &look{set: set, op: graphql.GetOperationContext(ctx)}
	for _, f := range l.collect(user.Field.Selections, model.KindUser, "Node") {
		if f.Name == "portfolio" {
			basis, _ := l.arguments(f)["basis"].(string)
			prefetchQuotes(set, pointers(positions), market.PriceBasis(basis))
		}
	}
}

// aheadOfMarkets looks ahead of a connection's markets.
func aheadOfMarkets(ctx context.Context, rows []model.Market) {
	if loaders.From(ctx).InMemory() {
		return
	}
	l, d := newLook(ctx), &marketDemand{}
	for _, selection := range l.nodeSelections(graphql.GetFieldContext(ctx).Field) {
		l.demandMarket(d, selection)
	}
	markets := make([]*market.Market, len(rows))
	for i := range rows {
		markets[i] = rows[i].Market
	}
	l.addMarkets(markets, d)
	l.send()
}

// nodeSelections returns the selections on the nodes of a connection.
func (l *look) nodeSelections(f graphql.CollectedField) []ast.SelectionSet {
	var out []ast.SelectionSet
	for _, c := range l.collect(f.Selections, f.Definition.Type.Name()) {
		switch c.Name {
		case "nodes":
			out = append(out, c.Selections)
		case "edges":
			for _, e := range l.collect(c.Selections, c.Definition.Type.Name()) {
				if e.Name == "node" {
					out = append(out, e.Selections)
				}
			}
		}
	}
	return out
}

// Ahead looks ahead of an operation: it sends for what the ids in the arguments of its root fields will have read. Call
// it once for each response, in its context, before the fields are executed.
func Ahead(ctx context.Context) {
	l := newLook(ctx)
	if l.op.Operation == nil || l.op.Operation.Operation != ast.Query {
		return
	}
	for _, f := range l.collect(l.op.Operation.SelectionSet, "Query") {
		l.addRoot(f)
	}
	l.send()
}

func (l *look) addRoot(f graphql.CollectedField) {
	switch f.Name {
	case "token":
		l.addRootTokens(l.ids(f, "tokenId"), f.Selections)
	case "tokens":
		l.addRootTokens(l.ids(f, "tokenIds"), f.Selections)
	case "tokenPrices":
		ids := l.ids(f, "tokenIds")
		l.prices = append(l.prices, ids...)
		l.addRootTokens(ids, l.child(f, "token"))
	case "spreads":
		ids := l.ids(f, "tokenIds")
		l.spreads = append(l.spreads, ids...)
		l.addRootTokens(ids, l.child(f, "token"))
	case "market":
		refs := append(refsOf(market.ByMarketID, l.ids(f, "marketId")), refsOf(market.BySlug, l.ids(f, "slug"))...)
		if len(refs) == 1 { // else it is refused
			l.addRootMarkets(refs, f.Selections)
		}
	case "markets":
		l.addRootMarkets(refsOf(market.ByMarketID, l.ids(f, "marketIds")), f.Selections)
	case "node":
		l.addNodes(l.ids(f, "id"), f.Selections)
	case "nodes":
		l.addNodes(l.ids(f, "ids"), f.Selections)
	}
}

func (l *look) addRootTokens(ids []string, selection ast.SelectionSet) {
	if len(ids) == 0 || len(selection) == 0 {
		return
	}
	d := &tokenDemand{}
	l.demandToken(d, selection)
	tokens := make([]model.Token, len(ids))
	for i, id := range ids {
		tokens[i] = model.Token{TokenID: id}
	}
	l.addTokens(tokens, d)
}

func (l *look) addRootMarkets(refs []market.MarketRef, selection ast.SelectionSet) {
	d := &marketDemand{}
	l.demandMarket(d, selection)
	l.addRefs(refs, d)
}

func (l *look) addNodes(ids []string, selection ast.SelectionSet) {
	var tokens, markets []string
	for _, id := range ids {
		kind, parts, ok := model.DecodeID(id)
		switch {
		case !ok || market.CheckID(parts[0]) != nil:
		case kind == model.KindToken:
			tokens = append(tokens, parts[0])
		case kind == model.KindMarket:
			markets = append(markets, parts[0])
		}
	}
	l.addRootTokens(tokens, selection)
	if len(markets) > 0 {
		l.addRootMarkets(refsOf(market.ByMarketID, markets), selection)
	}
}

func refsOf(by market.MarketRefKind, values []string) []market.MarketRef {
	refs := make([]market.MarketRef, len(values))
	for i, v := range values {
		refs[i] = market.MarketRef{By: by, Value: v}
	}
	return refs
}

// arguments returns a field's arguments with variables and defaults filled in.
func (l *look) arguments(f graphql.CollectedField) map[string]any {
	return f.ArgumentMap(l.op.Variables)
}

// ids returns the good ones of the ids in an argument, which may be one or a list; nothing when there are too many.
func (l *look) ids(f graphql.CollectedField, argument string) []string {
	var values []any
	switch v := l.arguments(f)[argument].(type) {
	case string:
		values = []any{v}
	case []any:
		values = v
	case []string: // a variable that was read in one pass
		for _, id := range v {
			values = append(values, id)
		}
	}
	if len(values) > maxIDs {
		return nil
	}
	node := argument == "id" || argument == "ids"
	ids := make([]string, 0, len(values))
	for _, v := range values {
		if id, ok := v.(string); ok && (node || market.CheckID(id) == nil) {
			ids = append(ids, id)
		}
	}
	return ids
}

// integer returns an Int argument, or ok false when it is not one or not good.
func (l *look) integer(f graphql.CollectedField, argument string) (n int, ok bool) {
	var err error
	switch v := l.arguments(f)[argument].(type) {
	case int64:
		n = int(v)
	case int:
		n = v
	case json.Number:
		n, err = strconv.Atoi(v.String())
	case nil:
		n = 20
	}
	return n, err == nil && n >= 1 && n <= market.MaxBookDepth
}
