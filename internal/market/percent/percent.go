// Package percent decodes percent-encoding for the search for secrets.
package percent

// Decode decodes the percent-encoding in s until no escape is left, so text that was encoded several times is decoded completely.
// The hex digits of an escape may be in either case. starts[i] is the index in s at which the text of byte i of the result begins.
// starts has one more element, which is len(s).
func Decode(s string) (text []byte, starts []int) {
	text, starts = make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	for i := range len(s) {
		text, starts = append(text, s[i]), append(starts, i)
		for n := len(text) - 3; n >= 0 && text[n] == '%'; n = len(text) - 3 {
			high, ok1 := hexDigit(text[n+1])
			low, ok2 := hexDigit(text[n+2])
			if !ok1 || !ok2 {
				break
			}
			text[n] = high<<4 | low
			text, starts = text[:n+1], starts[:n+1]
		}
	}
	return text, append(starts, len(s))
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
