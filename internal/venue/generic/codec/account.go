package codec

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldOrders    = wire.NewField("orders")
	fieldPositions = wire.NewField("positions")
	fieldBalance   = wire.NewField("balance")
	fieldOrder     = wire.NewField("order")
	fieldTrade     = wire.NewField("trade", "fill")
	fieldPosition  = wire.NewField("position")
)

// accountMessage returns the message of a frame about an account. If the frame has no address, the account is that of the
// connection. ok is false if the frame has an unreadable address or the address of another account, or if the connection has no
// account.
func (d *decoder) accountMessage(r *wire.Row, kind messages.Kind, at time.Time) (m *messages.Message, ok bool) {
	address := r.Of(fieldAddress)
	t := d.topic(messages.ChannelUser, address.Text())
	if address.Kind() != wire.String && !address.IsNull() || t.ID == "" || t != d.identity {
		r.Note("frame of a foreign account")
		return nil, false
	}
	return d.message(r, t, kind, at, true), true
}

// userSnapshot decodes a complete account. The balance is optional.
func (d *decoder) userSnapshot(r *wire.Row, at time.Time) []stream.Event {
	m, ok := d.accountMessage(r, messages.KindUserSnapshot, at)
	if !ok {
		return nil
	}
	m.Orders = rows(r, fieldOrders, (*wire.Row).Order)
	m.Positions = rows(r, fieldPositions, (*wire.Row).Position)
	if v := r.Of(fieldBalance); !v.IsNull() {
		m.Balance = element(r, fieldBalance, v, (*wire.Row).Balance)
	}
	return deliver(r, m)
}

// rows decodes a required list in the JSON field f. If the list is missing or an element is bad, the frame is bad.
func rows[T any](r *wire.Row, f wire.Field, read func(*wire.Row) T) []T {
	list, ok := r.Of(f).List()
	if !ok {
		r.Fail(f, "is not a list")
	}
	out := make([]T, 0, len(list))
	for _, v := range list {
		out = append(out, element(r, f, v, read))
	}
	return out
}

// element decodes the object v, which is in the JSON field f of a frame. If the object is bad, the frame is bad.
func element[T any](r *wire.Row, f wire.Field, v wire.Value, read func(*wire.Row) T) T {
	in := r.Child(v)
	out := read(in)
	if in.Err != nil {
		r.Fail(f, "is bad: "+in.Err.Error())
	}
	return out
}

// readNested decodes the object in the JSON field f of a frame. If the frame has no such field, readNested decodes the frame
// itself.
func readNested[T any](r *wire.Row, f wire.Field, read func(*wire.Row) T) T {
	if v := r.Of(f); !v.IsNull() {
		return element(r, f, v, read)
	}
	return read(r)
}

func (d *decoder) orderUpdate(r *wire.Row, at time.Time) []stream.Event {
	m, ok := d.accountMessage(r, messages.KindOrder, at)
	if !ok {
		return nil
	}
	m.Orders = []market.Order{readNested(r, fieldOrder, (*wire.Row).Order)}
	return deliver(r, m)
}

func (d *decoder) fill(r *wire.Row, at time.Time) []stream.Event {
	m, ok := d.accountMessage(r, messages.KindFill, at)
	if !ok {
		return nil
	}
	m.Trades = []market.Trade{readNested(r, fieldTrade, (*wire.Row).UserTrade)}
	return deliver(r, m)
}

func (d *decoder) positionUpdate(r *wire.Row, at time.Time) []stream.Event {
	m, ok := d.accountMessage(r, messages.KindPosition, at)
	if !ok {
		return nil
	}
	m.Positions = []market.Position{readNested(r, fieldPosition, (*wire.Row).Position)}
	return deliver(r, m)
}

func (d *decoder) balanceUpdate(r *wire.Row, at time.Time) []stream.Event {
	m, ok := d.accountMessage(r, messages.KindBalance, at)
	if !ok {
		return nil
	}
	m.Balance = readNested(r, fieldBalance, (*wire.Row).Balance)
	return deliver(r, m)
}
