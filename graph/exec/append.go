package exec

import "strconv"

const hex = "0123456789ABCDEF"

var mustEscape = func() (t [256]bool) {
	for c := range byte(' ') {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// AppendString appends s as a JSON string, with the same bytes as graphql.MarshalString. It copies invalid UTF-8 unchanged.
func AppendString(dst []byte, s string) []byte {
	if !needsNoEscape(s) {
		return appendEscaped(dst, s)
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func needsNoEscape(s string) bool {
	for i := range len(s) {
		if mustEscape[s[i]] {
			return false
		}
	}
	return true
}

func appendEscaped(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if !mustEscape[c] {
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
func (x *Execution) ID(id string) { x.Buf = AppendString(x.Buf, x.idPrefix+id) }

// OpenID returns Buf followed by the beginning of a value of the GraphQL type ID: a quotation mark and the prefix of
// Compiler.SetIDPrefix.
func (x *Execution) OpenID() []byte { return append(append(x.Buf, '"'), x.idPrefix...) }
