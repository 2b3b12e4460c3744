package resolvers

import (
	"context"
	"slices"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

func (r *queryResolver) User(_ context.Context, a market.Address, venue *string) (*model.User, error) {
	a, err := r.account(a, venue)
	if err != nil {
		return nil, err
	}
	return &model.User{Address: a}, nil
}

func (r *userResolver) Venue(_ context.Context, u *model.User) (*string, error) {
	return r.venueName(string(u.Address)), nil
}

func (r *userResolver) Currency(_ context.Context, u *model.User) (*string, error) {
	return r.venueOf(string(u.Address)).Currency, nil
}

func (r *queryResolver) Viewer(ctx context.Context) (*model.User, error) {
	if c := request.CredentialsFrom(ctx); c != nil {
		if a, ok := c.Address(); ok {
			return &model.User{Address: a}, nil
		}
	}
	return nil, nil
}

// checkAccess returns an error if the client is anonymous or may not read the account. It returns nil for every client if the venue's
// PublicAccounts is set.
func (r *Resolver) checkAccess(ctx context.Context, a market.Address) error {
	if r.venueOf(string(a)).PublicAccounts {
		return nil
	}
	switch c := request.CredentialsFrom(ctx); {
	case c == nil:
		return market.Errorf(market.CodeUnauthenticated, "user data needs credentials; send them in X-Venue-Credentials, or a bearer token in Authorization")
	case !c.MayRead(a):
		return market.Errorf(market.CodeForbidden, "only the caller's own account can be read here, since the venue checks no credentials")
	}
	return nil
}

// readUser reads a value of an account with the client's credentials. It returns an error if the venue has no value.
func readUser[T any](ctx context.Context, r *Resolver, from *loaders.Loader[market.Address, T], a market.Address) (reads.Value[*T], error) {
	if err := r.checkAccess(ctx, a); err != nil {
		return reads.Value[*T]{}, err
	}
	read, err := from.Get(a)
	if err == nil && read.Value == nil {
		err = market.Errorf(market.CodeUpstreamBadResponse, "the venue gave no answer for this account")
	}
	return read, err
}

func (r *userResolver) Balance(ctx context.Context, u *model.User) (*model.Balance, error) {
	if err := r.checkAccess(ctx, u.Address); err != nil {
		return nil, err
	}
	read, err := loaders.From(ctx).Balances.Get(u.Address)
	if err != nil || read.Value == nil { // the venue may have no balance for an account
		return nil, err
	}
	return &model.Balance{Balance: read.Value, Address: u.Address, Meta: read.Meta}, nil
}

func (r *balanceResolver) CashBalance(_ context.Context, b *model.Balance) (*market.Decimal, error) {
	if b.CashBalance == nil {
		return nil, r.cashError(b.Address)
	}
	return b.CashBalance, nil
}

func (r *userResolver) Orders(ctx context.Context, u *model.User, first *int, after *string, marketIDs []string, side *market.OrderSide) (*model.OrderConnection, error) {
	part, isSelected, err := r.listArguments(ctx, "orders", u.Address, first, after, marketIDs, textOf(side))
	if err != nil {
		return nil, err
	}
	read, err := readUser(ctx, r.Resolver, &loaders.From(ctx).Orders, u.Address)
	if err != nil {
		return nil, err
	}
	orders := pick(*read.Value, func(o *market.Order) bool { return isSelected(o.MarketID) && (side == nil || o.Side == *side) })
	p := cutPage(ctx, orders, func(o **market.Order) uint64 { return keyHash((*o).OrderID) }, part)
	nodes, edges := rowsOf(ctx, p, func(o **market.Order) model.Order { return model.Order{Order: *o, Address: u.Address} }, tokenRefOfOrder,
		func(cursor string, node model.Order) model.OrderEdge {
			return model.OrderEdge{Cursor: cursor, Node: node}
		})
	return &model.OrderConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}, nil
}

// listArguments checks the arguments of an account's list that is read as a whole. It returns the page arguments, and a function
// that reports whether a market id is in marketIDs. If marketIDs is nil, isSelected returns true for every id. The parameter others
// contains the sort and the other filters.
func (r *Resolver) listArguments(ctx context.Context, list string, a market.Address, first *int, after *string, marketIDs []string, others ...string) (part pageArguments, isSelected func(string) bool, err error) {
	if part, err = parsePageArguments(listHash(list, string(a)), first, after); err == nil {
		err = checkIDCount("marketIds", marketIDs)
	}
	if err != nil {
		return part, nil, err
	}
	marketIDs = r.marketIDs(marketIDs)
	part.order = r.listOrderOf(ctx, a, part.list, others, marketIDs)
	wanted := make(map[string]bool, len(marketIDs))
	for _, id := range marketIDs {
		wanted[id] = true
	}
	return part, func(id string) bool { return marketIDs == nil || wanted[id] }, nil
}

// pick returns pointers to the rows for which keep returns true.
func pick[T any](rows []T, keep func(*T) bool) []*T {
	picked := make([]*T, 0, len(rows))
	for i := range rows {
		if keep(&rows[i]) {
			picked = append(picked, &rows[i])
		}
	}
	return picked
}

// readAccountPage checks the arguments of an account's list that the venue sends in pages, and reads a page.
func readAccountPage[T any](ctx context.Context, r *Resolver, list string, a market.Address, first *int, after *string, from, to *time.Time, key func(*T) string, read func(page string, limit int) (venuePage[T], error)) (page[T], error) {
	n, err := pageSize(first, defaultPage, maxUpstreamPage)
	if err == nil && from != nil && to != nil && from.After(*to) {
		err = badInput("from is after to")
	}
	if err == nil {
		err = r.checkAccess(ctx, a)
	}
	if err != nil {
		return page[T]{}, err
	}
	return readPages(ctx, read, key, listHash(list, string(a)), n, after)
}

func (r *userResolver) Trades(ctx context.Context, u *model.User, first *int, after *string, marketID *string, from, to *time.Time) (*model.TradeConnection, error) {
	if marketID != nil {
		if err := market.CheckID(*marketID); err != nil {
			return nil, err
		}
	}
	set, q := loaders.From(ctx), queries.Trades{MarketID: valueOr(marketID, ""), From: queries.BoundOf(from), To: queries.BoundOf(to)}
	p, err := readAccountPage(ctx, r.Resolver, "trades", u.Address, first, after, from, to, (*market.Trade).Key, func(page string, limit int) (venuePage[market.Trade], error) {
		q.Page, q.Limit = page, limit
		return tradePage(set.Trades(u.Address, q))
	})
	if err != nil {
		return nil, err
	}
	return tradeConnection(ctx, p), nil
}

func (r *userResolver) History(ctx context.Context, u *model.User, first *int, after *string, kinds []market.HistoryKind, from, to *time.Time) (*model.HistoryConnection, error) {
	if slices.Contains(kinds, market.HistoryUnknown) {
		return nil, badInput("history can't be filtered by the kind UNKNOWN")
	}
	set, q := loaders.From(ctx), queries.History{Kinds: kinds, From: queries.BoundOf(from), To: queries.BoundOf(to)}
	p, err := readAccountPage(ctx, r.Resolver, "history", u.Address, first, after, from, to, (*market.HistoryRecord).Key, func(page string, limit int) (venuePage[market.HistoryRecord], error) {
		q.Page, q.Limit = page, limit
		read, err := set.History(u.Address, q)
		if err != nil || read.Value == nil {
			return venuePage[market.HistoryRecord]{}, err
		}
		return venuePage[market.HistoryRecord]{read.Value.Records, read.Value.Next, read.Value.Total, read.Value.LeftOut}, nil
	})
	if err != nil {
		return nil, err
	}
	nodes, edges := rowsOf(ctx, p, func(h *market.HistoryRecord) model.HistoryRecord { return model.HistoryRecord{HistoryRecord: h} }, tokenRefOfRecord,
		func(cursor string, node model.HistoryRecord) model.HistoryEdge {
			return model.HistoryEdge{Cursor: cursor, Node: node}
		})
	return &model.HistoryConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}, nil
}
