package fanout

import (
	"context"
	"net/netip"
)

// Part is one of the executions that serve a member together. Each event belongs to one part.
type Part struct {
	Key  Key
	Open Open
}

// seat is the membership of a member in one group.
type seat struct {
	member *Member
	group  *Group
	// payer is guarded by the hub's lock.
	payer *payer

	// The group's lock guards index and since. index is the position in the group's members, -1 if there is none. since
	// is the number of the first event that the member gets.
	index int
	since uint64

	// The member's lock guards the rest. behind is true from the loss of an event until Group.resync. over is true after the group
	// has ended.
	behind, over bool
}

// listPayment records which client is charged for a subscription in parts. The zero value is for a subscription without parts.
type listPayment struct {
	key   Key
	payer *payer
}

// JoinParts adds m to the group of each part and opens the groups that do not exist. It charges the client once for all of the
// client's members with the same key, which identifies the whole subscription. charge and release are as for JoinCharged, but
// release is always called when the client's last member leaves. joined is false if more groups than Limits.Groups would be open.
func (h *Hub) JoinParts(ctx context.Context, key Key, m *Member, client netip.Prefix, charge func() (release func(), err error), parts []Part) (joined bool, err error) {
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
		h.take(ctx, s, part.Open)
	}
	return true, nil
}

// pay charges a client for a subscription in parts. The caller holds the lock.
func (h *Hub) pay(key Key, client netip.Prefix, charge func() (release func(), err error)) (listPayment, error) {
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

// unpay undoes pay. The caller holds the lock.
func (h *Hub) unpay(paid listPayment) {
	if paid.payer == nil {
		return
	}
	payers := h.lists[paid.key]
	if payers.leave(paid.payer); len(payers) == 0 {
		delete(h.lists, paid.key)
	}
}
