package telemetry

import (
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	other = "other"
	// maxLabels bounds the values of a label that is not a fixed set.
	maxLabels = 64
)

// bounded lets through the first so many different words; its zero value is ready.
type bounded struct {
	// most is how many; 0 stands for maxLabels.
	most int
	// shape returns what a word is as a label; nil stands for word.
	shape func(string) string

	mu    sync.Mutex
	words map[string]string
}

// label returns a word as it is shown, or "other" when it comes too late or is empty or long.
func (b *bounded) label(s string) string {
	if s == "" || len(s) > 100 {
		return other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if label, ok := b.words[s]; ok {
		return label
	}
	most, shape := b.most, b.shape
	if most == 0 {
		most = maxLabels
	}
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

// word is in lower case with '_' for what is no letter, digit or '-'.
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

// name leaves a name as it is, as far as it is a text.
func name(s string) string {
	if !utf8.ValidString(s) {
		return other
	}
	return strings.Clone(s)
}
