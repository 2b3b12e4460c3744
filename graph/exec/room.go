package exec

// errorSize is what an error counts for in the size of a response, in bytes.
const errorSize = 1 << 10

// Room bounds the size of a response while it is written. It is for one execution at a time.
type Room interface {
	// Grow returns the size in bytes up to which a response may grow that is about to exceed size. An error takes the place of
	// the response. Growing from 0 never fails.
	Grow(size int) (limit int, err error)
}

// enter gives the response its first room and returns the size that the buffer should have: expected, or less where there is
// no room for so much yet.
func (x *Execution) enter(room Room, expected int) int {
	x.room, x.start, x.Limit = room, len(x.Buf), maxInt
	if room == nil {
		return expected
	}
	limit, err := room.Grow(expected)
	if err != nil {
		expected = 0
		limit, _ = room.Grow(0)
	}
	x.Limit = x.start + limit
	return expected
}

const maxInt = int(^uint(0) >> 1)

// Full reports whether the response has become too large for another field. It is asked when Buf has passed Limit. The error of the
// room is then that of the field, and the only one.
func (x *Execution) Full(f *Field) bool {
	if x.full {
		return true
	}
	size := len(x.Buf) - x.start + x.errorsInSize
	limit, err := x.room.Grow(size)
	if err == nil {
		x.Limit = x.start + limit - x.errorsInSize
		return false
	}
	clear(x.errs)
	x.errs, x.taken = x.errs[:0], x.taken[:0]
	x.add(f, err)
	x.full, x.Limit = true, -1
	return true
}

// Stop ends an object before its next field, since the response is full.
func (o *Object) Stop(s *Selection) { o.Next, o.null = len(s.Fields), true }
