package exec

import "math"

// errorSize is the assumed size of an error in the response, in bytes.
const errorSize = 1 << 10

// SizeLimiter limits the size of a response while the response is written. Only one Execution may use a SizeLimiter at a time.
type SizeLimiter interface {
	// Grow is called when a response needs the given number of bytes. It returns the new limit in bytes, or an error if the
	// response must not become so large. Grow(0) must not return an error.
	Grow(size int) (limit int, err error)
}

// setLimiter sets limiter and the first limit of the response. It returns the initial size of the buffer: the expected size, or 0
// if limiter returns an error for the expected size.
func (x *Execution) setLimiter(limiter SizeLimiter, expected int) int {
	x.limiter, x.start, x.Limit = limiter, len(x.Buf), math.MaxInt
	if limiter == nil {
		return expected
	}
	limit, err := limiter.Grow(expected)
	if err != nil {
		expected = 0
		limit, _ = limiter.Grow(0)
	}
	x.Limit = x.start + limit
	return expected
}

// Full reports whether the response must not contain another field. Generated code calls Full before the field f if len(Buf)
// exceeds Limit. Full then asks limiter for a greater limit. If limiter returns an error, this error replaces all errors of the
// response and gets the path of f.
func (x *Execution) Full(f *Field) bool {
	if x.full {
		return true
	}
	size := len(x.Buf) - x.start + x.errorBytes
	limit, err := x.limiter.Grow(size)
	if err == nil {
		x.Limit = x.start + limit - x.errorBytes
		return false
	}
	clear(x.errs)
	x.errs, x.errorIndexes = x.errs[:0], x.errorIndexes[:0]
	x.add(f, err)
	x.full, x.Limit = true, -1
	return true
}

// Stop skips the remaining fields of an object because the response is full.
func (o *Object) Stop(s *Selection) { o.Next, o.null = len(s.Fields), true }
