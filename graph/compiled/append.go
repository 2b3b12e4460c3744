package compiled

import "strconv"

const hex = "0123456789ABCDEF"

// escaped are the bytes that don't stand in a string of JSON as they are.
var escaped = func() (t [256]bool) {
	for c := range byte(' ') {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// AppendString appends a string in JSON as graphql.MarshalString writes it: bytes that are no UTF-8 stay as they are.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if !escaped[c] {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '\t':
			dst = append(dst, `\t`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\\':
			dst = append(dst, `\\`...)
		case '"':
			dst = append(dst, `\"`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// AppendInt appends a number as graphql.MarshalInt writes it.
func AppendInt(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(i), 10) }

// AppendBoolean appends true or false.
func AppendBoolean(dst []byte, b bool) []byte { return strconv.AppendBool(dst, b) }
