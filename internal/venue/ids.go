package venue

import "unicode/utf8"

// maxID is the greatest length of an id in bytes.
const maxID = 256

// validID tells whether s can be an id: one that could change a list of ids or a path is none.
func validID(s string) bool {
	if s == "" || len(s) > maxID || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r == ',' || r == '/' || r < ' ' || r >= 0x7f && r <= 0x9f {
			return false
		}
	}
	return true
}

// checkID returns BAD_USER_INPUT for what cannot be an id.
func checkID(e Endpoint, s string) error {
	if !validID(s) {
		return badInput(e, "an id has 1 to 256 bytes and no comma, slash or control character")
	}
	return nil
}
