package telemetry

import (
	"cmp"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	other = "other"
	// maxLabels is the maximum number of values of a label without a fixed set of values.
	maxLabels = 64
)

// boundedLabel bounds the number of different values of a label. The zero value is ready to use.
type boundedLabel struct {
	most  int                 // maximum number of values; 0 means maxLabels
	shape func(string) string // normalizes a value; nil means the function word

	mu    sync.Mutex
	words map[string]string
}

// label returns the normalized form of s. It returns "other" if s is empty or longer than 100 bytes. It also returns "other" for a
// new s if the maximum number of values is reached.
func (b *boundedLabel) label(s string) string {
	if s == "" || len(s) > 100 {
		return other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if label, ok := b.words[s]; ok {
		return label
	}
	most, shape := cmp.Or(b.most, maxLabels), b.shape
	if shape == nil {
		shape = word
	}
	if len(b.words) >= most {
		return other
	}
	if b.words == nil {
		b.words = make(map[string]string, most)
	}
	label := shape(s)
	b.words[strings.Clone(s)] = label
	return label
}

// word converts s to lower case and replaces all characters except ASCII letters, ASCII digits and '-' with '_'.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r | 0x20
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, s)
}

// name returns a copy of s, or "other" if s is not valid UTF-8.
func name(s string) string {
	if !utf8.ValidString(s) {
		return other
	}
	return strings.Clone(s)
}
