// Package percent decodes percent-encoding for the search for secrets.
package percent

import "encoding/hex"

// Decode decodes the percent-encoding in s until no escape is left, so text that was encoded several times is decoded completely.
// The hex digits of an escape may be in either case. starts[i] is the index in s at which the text of byte i of the result begins.
// starts has one more element, which is len(s).
func Decode(s string) (text []byte, starts []int) {
	text, starts = make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	for i := range len(s) {
		text, starts = append(text, s[i]), append(starts, i)
		for n := len(text) - 3; n >= 0 && text[n] == '%'; n = len(text) - 3 {
			if _, err := hex.Decode(text[n:n+1], text[n+1:n+3]); err != nil {
				break
			}
			text, starts = text[:n+1], starts[:n+1]
		}
	}
	return text, append(starts, len(s))
}
