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

// maxCredentialsDepth is the greatest nesting depth of objects and lists. The outer object has depth 1.
const maxCredentialsDepth = 4

// Address is an EVM wallet address: 0x and 40 hex digits in lower case.
type Address string

// ParseAddress returns an address in lower case. Its errors have CodeBadUserInput.
func ParseAddress(s string) (Address, error) {
	if len(s) != 42 || s[0] != '0' || s[1] != 'x' && s[1] != 'X' || strings.Trim(s[2:], "0123456789abcdefABCDEF") != "" {
		return "", Errorf(CodeBadUserInput, "an address is 0x and 40 hex digits")
	}
	return Address(strings.ToLower(s)), nil
}

// Credentials authenticate a client to the venue. They are a JSON object that only the venue understands. Credentials are immutable
// and exist in memory only.
type Credentials struct {
	Redacted
	wire    *string
	address Address
	// confined reports that the credentials may read only the account with this address.
	confined bool
}

// ParseCredentials accepts any JSON object of at most MaxCredentialsLength bytes and nesting depth 4. It removes white space around
// the object. If the member "address" is a wallet address, this address is the account of the credentials. Errors never quote the
// input.
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
		c.address, _ = ParseAddress(address) // not an error, because only the venue knows what an invalid address means
	}
	return c, nil
}

// depthOf returns the greatest nesting depth of objects and lists in a valid JSON text.
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

// ForAccount returns a copy of the credentials for the account with the given address. The copy may read every account, even if c
// is confined.
func (c *Credentials) ForAccount(a Address) *Credentials {
	return &Credentials{wire: c.wire, address: a}
}

// Confined returns a copy of the credentials that may read only their own account.
func (c *Credentials) Confined() *Credentials {
	return &Credentials{wire: c.wire, address: c.address, confined: true}
}

// MayRead reports whether the credentials may be used to read the account with the given address.
func (c *Credentials) MayRead(a Address) bool { return !c.confined || a == c.address }

// Wire returns the JSON object exactly as the client wrote it, without white space around it. Use the text only for requests to the
// venue and for hashes. The text must not reach a log, an error or a cache key.
func (c *Credentials) Wire() string { return *c.wire }

// Address returns the account of the credentials. ok is false if the credentials have no account.
func (c *Credentials) Address() (a Address, ok bool) { return c.address, c.address != "" }

// Redacted is embedded in a type that holds a secret. Every fmt verb, encoder and logger then prints a fixed text instead of the
// secret. The secret must be behind a pointer, because fmt calls no methods of unexported fields: for a pointer in such a field, it
// prints only the memory address.
type Redacted struct{}

const redacted = "[redacted]"

// String implements fmt.Stringer with a fixed text.
func (Redacted) String() string { return redacted }

// GoString implements fmt.GoStringer with a fixed text.
func (Redacted) GoString() string { return redacted }

// Format implements fmt.Formatter with a fixed text for every verb.
func (Redacted) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalJSON implements json.Marshaler with a fixed text.
func (Redacted) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer with a fixed text.
func (Redacted) LogValue() slog.Value { return slog.StringValue(redacted) }
