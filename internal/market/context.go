package market

import "context"

// carrying is a context in one piece with what it carries under the key type K, where context.WithValue takes two.
type carrying[K comparable, V any] struct {
	context.Context
	value V
}

// Value implements context.Context.
func (c *carrying[K, V]) Value(key any) any {
	if _, own := key.(K); own {
		return c
	}
	return c.Context.Value(key)
}

// Carry returns a context that carries a value under the key type K, which is an empty struct of the caller's own.
func Carry[K comparable, V any](ctx context.Context, value V) context.Context {
	return &carrying[K, V]{ctx, value}
}

// Carried returns what Carry has put into a context under K, the zero V where that is nothing.
func Carried[K comparable, V any](ctx context.Context) (value V) {
	var key K
	if c, ok := ctx.Value(key).(*carrying[K, V]); ok {
		return c.value
	}
	return value
}
