package exec

import "strconv"

const hex = "0123456789ABCDEF"

// escaped marks the bytes that JSON strings must escape.
var escaped = func() (t [256]bool) {
	for c := range byte(' ') {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// AppendString appends s as a JSON string, with the same bytes as graphql.MarshalString. It copies invalid UTF-8 unchanged.
func AppendString(dst []byte, s string) []byte {
	if !plain(s) {
		return appendEscaped(dst, s)
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// plain reports whether s needs no escapes in a JSON string. It checks eight bytes at a time if s has at least eight bytes.
func plain(s string) bool {
	if len(s) < 8 {
		for i := range len(s) {
			if escaped[s[i]] {
				return false
			}
		}
		return true
	}
	const each, high = 0x0101010101010101, 0x8080808080808080
	for i, last := 0, len(s)-8; ; i += 8 {
		i = min(i, last)
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		// The subtraction of n from a byte whose highest bit is clear sets the highest bit exactly if the byte is less than n. So the
		// subtraction of ' ' finds control characters. XOR turns quotation marks and backslashes into zero bytes, and the subtraction of
		// 1 finds these zero bytes.
		control, quote, backslash := w, w^each*'"', w^each*'\\'
		if ((control-each*' ')&^control|(quote-each)&^quote|(backslash-each)&^backslash)&high != 0 {
			return false
		}
		if i == last {
			return true
		}
	}
}

func appendEscaped(dst []byte, s string) []byte {
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

// AppendInt appends a number in the form of graphql.MarshalInt.
func AppendInt(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(i), 10) }

// AppendBoolean appends true or false.
func AppendBoolean(dst []byte, b bool) []byte { return strconv.AppendBool(dst, b) }

// ID writes a value of the GraphQL type ID: the prefix of Compiler.SetIDPrefix, followed by id.
func (x *Execution) ID(id string) {
	if x.before != "" {
		id = x.before + id
	}
	x.Buf = AppendString(x.Buf, id)
}

// OpenID returns Buf followed by the beginning of a value of the GraphQL type ID: a quotation mark and the prefix of
// Compiler.SetIDPrefix.
func (x *Execution) OpenID() []byte { return append(append(x.Buf, '"'), x.before...) }
