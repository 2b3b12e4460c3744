package fanout

import (
	"context"

	"oddsgraph/httpapi/quota"
)

// Part is one of the executions that a member gets its events from. Each event belongs to one part.
type Part struct {
	Key     Key
	Execute Execute
}

// seat is the membership of a member in one group.
type seat struct {
	member *Member
	group  *Group
	// The hub's lock guards payer.
	payer *payer

	// index is the position of the seat in Group.members, or -1 if the seat is not there. receives reports whether the member gets the
	// events that are for all members. The group's lock guards both fields.
	index    int
	receives bool

	// behind is true from the time when an event is dropped until Group.resync is called. over is true after the group has ended.
	// The member's lock guards both fields.
	behind, over bool
}

// listPayment records which client is charged for a subscription made with JoinParts. For other subscriptions, it is zero.
type listPayment struct {
	key   Key
	payer *payer
}

// JoinParts adds m to the group of each part and opens the groups that do not exist. The key identifies the whole subscription.
// A client is charged once for all its members with the same key. JoinParts calls charge before the first of these members
// joins. The hub calls release when the last of them leaves. charge and release must not use the hub. If charge fails, joined is
// false, and err is the error of charge. If more than Limits.Groups groups would be open, joined is false, and err is nil. If m
// has left already, or if the hub is closed, m does not join, but joined is true.
func (h *Hub) JoinParts(ctx context.Context, key Key, m *Member, client quota.Client, charge func() (release func(), err error), parts []Part) (joined bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses(m) {
		return true, nil
	}
	opened := 0
	for _, part := range parts {
		if h.groups[part.Key] == nil {
			opened++
		}
	}
	if len(h.groups)+opened > h.limits.Groups {
		return false, nil
	}
	paid, err := h.pay(key, client, charge)
	if err != nil {
		return false, err
	}
	seats := make([]seat, len(parts))
	for i, part := range parts {
		seats[i] = seat{member: m, group: h.group(part.Key), index: -1}
	}
	if !m.join(h, seats, paid) {
		h.unpay(paid)
		return true, nil
	}
	for i, part := range parts {
		s := &seats[i]
		s.payer, _ = s.group.billing.charge(client, func() (func(), error) { return func() {}, nil })
		h.take(ctx, s, part.Execute)
	}
	return true, nil
}

// pay charges a client for a subscription made with JoinParts.
func (h *Hub) pay(key Key, client quota.Client, charge func() (release func(), err error)) (listPayment, error) {
	payers := h.lists[key]
	if payers == nil {
		payers = make(billing)
	}
	p, err := payers.charge(client, charge)
	if err != nil {
		return listPayment{}, err
	}
	h.lists[key] = payers
	return listPayment{key, p}, nil
}

func (h *Hub) unpay(paid listPayment) {
	if paid.payer == nil {
		return
	}
	payers := h.lists[paid.key]
	if payers.leave(paid.payer); len(payers) == 0 {
		delete(h.lists, paid.key)
	}
}
