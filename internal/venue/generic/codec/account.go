package codec

import (
	"time"

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

// accountFrame returns the decoder of a frame about an account. fill decodes what is not in every frame. If the frame has no address,
// the account is that of the connection. A frame with an unreadable address or that of another account has no events.
func accountFrame(kind messages.Kind, fill func(r *wire.Row, m *messages.Message)) func(*decoder, *wire.Row, time.Time) []stream.Event {
	return func(d *decoder, r *wire.Row, at time.Time) []stream.Event {
		address := r.Of(fieldAddress)
		t := d.topic(messages.ChannelUser, address.Text())
		if address.Kind() != wire.String && !address.IsNull() || t.ID == "" || t != d.identity {
			r.Note("frame of a foreign account")
			return nil
		}
		m := d.message(r, t, kind, at, true)
		fill(r, m)
		return deliver(r, m)
	}
}

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

func element[T any](r *wire.Row, f wire.Field, v wire.Value, read func(*wire.Row) T) T {
	in := r.Child(v)
	out := read(in)
	if in.Err != nil {
		r.Fail(f, "is bad: "+in.Err.Error())
	}
	return out
}

func readNested[T any](r *wire.Row, f wire.Field, read func(*wire.Row) T) T {
	if v := r.Of(f); !v.IsNull() {
		return element(r, f, v, read)
	}
	return read(r)
}
