package market

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"
)

// MaxCredentialsLength is the greatest size in bytes of a credentials object.
const MaxCredentialsLength = 2048

// maxCredentialsDepth is how deep objects and lists may be nested in credentials, the object itself included.
const maxCredentialsDepth = 4

// Address is an EVM wallet address: 0x and 40 hex digits in lower case.
type Address string

// ParseAddress checks an address and returns it in lower case.
func ParseAddress(s string) (Address, error) {
	if len(s) != 42 || s[0] != '0' || s[1] != 'x' && s[1] != 'X' {
		return "", Errorf(CodeBadUserInput, "an address is 0x and 40 hex digits")
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i] | 0x20; {
		case isDigit(s[i]), c >= 'a' && c <= 'f':
		default:
			return "", Errorf(CodeBadUserInput, "an address is 0x and 40 hex digits")
		}
	}
	return Address(strings.ToLower(s)), nil
}

// Credentials are what a caller proves to the venue who it is with: a JSON object that means something to the venue only.
// They are immutable, live in memory only, and print as a fixed text whatever verb or logger is used.
type Credentials struct {
	// wire is a pointer because fmt prints what lies in an unexported field of a struct without asking its methods.
	wire    *string
	address Address
	// confined credentials are good for address alone.
	confined bool
}

// ParseCredentials accepts any JSON object of at most MaxCredentialsLength bytes and depth 4, and keeps its text. Where its
// member address is a wallet address, it names the caller's account. Errors never quote the input.
func ParseCredentials(b []byte) (*Credentials, error) {
	b = bytes.Trim(b, " \t\r\n")
	if len(b) > MaxCredentialsLength {
		return nil, Errorf(CodeBadUserInput, "credentials are at most %d bytes long", MaxCredentialsLength)
	}
	var fields map[string]json.RawMessage
	if !utf8.Valid(b) || json.Unmarshal(b, &fields) != nil || fields == nil {
		return nil, Errorf(CodeBadUserInput, "credentials are one JSON object, such as {\"apiKey\":…,\"secret\":…,\"passphrase\":…}")
	}
	if depthOf(b) > maxCredentialsDepth {
		return nil, Errorf(CodeBadUserInput, "credentials are nested at most %d deep", maxCredentialsDepth)
	}
	text := string(b)
	c := &Credentials{wire: &text}
	var address string
	if json.Unmarshal(fields["address"], &address) == nil {
		c.address, _ = ParseAddress(address) // another text names no account of ours
	}
	return c, nil
}

// depthOf returns how deep objects and lists are nested in a valid JSON text.
func depthOf(b []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}

// Of returns the same credentials as those of an account.
func (c *Credentials) Of(a Address) *Credentials { return &Credentials{wire: c.wire, address: a} }

// Confined returns the same credentials for reads of their own account alone.
func (c *Credentials) Confined() *Credentials {
	return &Credentials{wire: c.wire, address: c.address, confined: true}
}

// MayRead reports whether the venue may be asked for an account with these credentials.
func (c *Credentials) MayRead(a Address) bool { return !c.confined || a == c.address }

// Wire returns the JSON object as the caller wrote it, which is sent to the venue. The text must not reach a log, an error or
// a key that is not hashed.
func (c *Credentials) Wire() string { return *c.wire }

// Address returns the account that the credentials name; ok is false when they name none.
func (c *Credentials) Address() (a Address, ok bool) { return c.address, c.address != "" }

const redacted = "[credentials]"

// String returns a fixed text.
func (Credentials) String() string { return redacted }

// GoString returns a fixed text.
func (Credentials) GoString() string { return redacted }

// Format writes a fixed text whatever the verb is.
func (Credentials) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalJSON writes a fixed text.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue returns a fixed text.
func (Credentials) LogValue() slog.Value { return slog.StringValue(redacted) }
