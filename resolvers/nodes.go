package resolvers

import (
	"context"
	"strconv"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

func (r *queryResolver) Node(ctx context.Context, id string) (model.Node, error) {
	id, kind, parts, err := r.decodeID(id)
	if err != nil {
		return nil, err
	}
	set := loaders.From(ctx)
	switch kind {
	case model.KindUser:
		a, err := r.parseAddress(parts[0])
		return model.User{Address: a}, err
	case model.KindPosition, model.KindLot:
		return r.findPosition(ctx, set, id, parts[0])
	case model.KindOrder:
		return r.findOrder(ctx, set, parts[0], parts[1])
	}
	if err := market.CheckID(parts[0]); err != nil {
		return nil, err
	}
	switch kind {
	case model.KindToken:
		return model.Token{TokenID: parts[0]}, nil
	case model.KindMarket:
		return node(readMarket(ctx, byID(parts[0])))
	default:
		return node(readEvent(set, market.EventRef{EventID: parts[0]}))
	}
}

// decodeID decodes a global id. local is the id without the venue's name. kind and parts are the results of model.DecodeID for
// local. decodeID returns an error for an invalid id and for an id of another venue.
func (r *Resolver) decodeID(id string) (local, kind string, parts []string, err error) {
	venue, local := model.SplitVenue(id)
	kind, parts, ok := model.DecodeID(local)
	if !ok || len(venue) > maxVenueName {
		return "", "", nil, badInput("id is not a global id of this graph")
	}
	if venue != r.Venues[0].Name {
		return "", "", nil, badInput("id belongs to the venue %s, but this service reads the venue %s", nameOf(venue), nameOf(r.Venues[0].Name))
	}
	return local, kind, parts, nil
}

// maxVenueName is the greatest length in bytes of a venue's name in an id. The name is bounded because error messages repeat it.
const maxVenueName = 32

// nameOf returns the name of a venue for error messages. Global ids of the generic driver contain no venue name.
func nameOf(venue string) string {
	if venue == "" {
		return "generic"
	}
	return strconv.Quote(venue)
}

// node returns *object as a Node, or nil if object is nil.
func node[T model.Node](object *T, err error) (model.Node, error) {
	if object == nil || err != nil {
		return nil, err
	}
	return *object, nil
}

func (r *queryResolver) Nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	if err := checkIDCount("ids", ids); err != nil {
		return nil, err
	}
	out := make([]model.Node, len(ids))
	for i, id := range ids {
		n, err := r.Node(ctx, id)
		if err != nil {
			exec.ReportAt(ctx, i, err)
			continue
		}
		out[i] = n
	}
	return out, nil
}

func (r *queryResolver) findPosition(ctx context.Context, set *loaders.Set, id, address string) (model.Node, error) {
	a, err := r.parseAddress(address)
	if err != nil {
		return nil, err
	}
	read, err := readUser(ctx, r.Resolver, &set.Positions, a)
	if err != nil {
		return nil, err
	}
	for i := range *read.Value {
		if p := &(*read.Value)[i]; model.PositionID(a, p) == id {
			return model.Position{Position: p, Address: a, Meta: read.Meta}, nil
		}
	}
	return nil, nil
}

func (r *queryResolver) findOrder(ctx context.Context, set *loaders.Set, address, orderID string) (model.Node, error) {
	a, err := r.parseAddress(address)
	if err != nil {
		return nil, err
	}
	read, err := readUser(ctx, r.Resolver, &set.Orders, a)
	if err != nil {
		return nil, err
	}
	for i := range *read.Value {
		if o := &(*read.Value)[i]; o.OrderID == orderID {
			return model.Order{Order: o, Address: a}, nil
		}
	}
	return nil, nil
}
