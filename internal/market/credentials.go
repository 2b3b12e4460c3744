package market

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// MaxCredentialsLength is the greatest size in bytes of a credentials object.
const MaxCredentialsLength = 2048

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

// Credentials are what a caller proves to the venue who it is with. They are immutable, live in memory only, and print
// as a fixed text whatever verb or logger is used.
type Credentials struct {
	// wire is a pointer because fmt prints what lies in an unexported field of a struct without asking its methods.
	wire    *string
	address Address
}

// ParseCredentials reads one flat JSON object with string values of at most MaxCredentialsLength bytes. apiKey (or key),
// secret and passphrase are what venues ask for; other fields are passed through, except address, which names the
// caller's account here and is not sent on as a credential. Errors never quote the input.
func ParseCredentials(b []byte) (*Credentials, error) {
	if len(b) > MaxCredentialsLength {
		return nil, Errorf(CodeBadUserInput, "credentials are at most %d bytes long", MaxCredentialsLength)
	}
	const form = "credentials are one flat JSON object with string values, such as {\"apiKey\":…,\"secret\":…,\"passphrase\":…}"
	fields, err := flatObject(b)
	if err != nil {
		return nil, Errorf(CodeBadUserInput, form)
	}
	c := &Credentials{}
	if a, ok := fields["address"]; ok {
		if c.address, err = ParseAddress(a); err != nil {
			return nil, Errorf(CodeBadUserInput, "the address in the credentials is not 0x and 40 hex digits")
		}
		delete(fields, "address")
	}
	if key, ok := fields["key"]; ok {
		if _, both := fields["apiKey"]; !both {
			fields["apiKey"] = key
			delete(fields, "key")
		}
	}
	if fields["apiKey"] == "" {
		return nil, Errorf(CodeBadUserInput, "the credentials have no apiKey")
	}
	wire, err := json.Marshal(fields) // sorted by key, so that equal credentials are equal texts
	if err != nil {
		return nil, Errorf(CodeBadUserInput, form)
	}
	text := string(wire)
	c.wire = &text
	return c, nil
}

// flatObject decodes an object of strings and refuses repeated keys, which parsers disagree about.
func flatObject(b []byte) (map[string]string, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not an object")
	}
	fields := make(map[string]string, 4)
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := k.(string)
		value, ok := v.(string)
		if _, repeated := fields[key]; !ok || repeated {
			return nil, fmt.Errorf("not a flat object of strings")
		}
		fields[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return fields, nil
}

// Wire returns the JSON object that is sent to the venue. Only the venue client may call it, and the text must not reach
// a log, an error or a key.
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

type credentialsKey struct{}

// WithCredentials returns a context whose reads of user data are made as the holder of c.
func WithCredentials(ctx context.Context, c *Credentials) context.Context {
	return context.WithValue(ctx, credentialsKey{}, c)
}

// CredentialsFrom returns the caller's credentials, or nil when the caller is anonymous. The recorder of ctx is told that
// somebody looked: what a response shows can depend on its caller in no other way.
func CredentialsFrom(ctx context.Context) *Credentials {
	RecorderFrom(ctx).identify()
	c, _ := ctx.Value(credentialsKey{}).(*Credentials)
	return c
}
