package cache

import (
	"strings"

	"oddsgraph/internal/market/messages"
)

// ofToken answers for kinds whose key is a token, and whose values the venue streams with the prices.
type ofToken[T any] struct{ plain[string, T] }

func (ofToken[T]) forget(id string) func(string) bool {
	return func(token string) bool { return token == id }
}

func (ofToken[T]) topics(tokens []string) (messages.Channel, []string) {
	return messages.ChannelPrices, tokens
}

// ownID returns a string that equals id, for kind.own. If text(value) equals id, ownID returns text(value). Otherwise, or if value is
// nil, ownID returns a copy of id.
func ownID[T any](id string, value *T, text func(*T) string) string {
	if value != nil {
		if same := text(value); same == id {
			return same
		}
	}
	return strings.Clone(id)
}
