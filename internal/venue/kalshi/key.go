package kalshi

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// Key is an API key of the operator. Every fmt verb, encoder and logger prints a fixed text instead of the key. Key is safe for
// concurrent use.
type Key struct {
	// secret is a pointer, so that fmt prints only an address: fmt prints unexported fields without calling their methods.
	secret *secret
}

type secret struct {
	id      string
	private *rsa.PrivateKey
}

// minKeyBits is the least length of a key in bits.
const minKeyBits = 2048

// ParseKey parses a PEM text with an RSA key in PKCS #1 or PKCS #8. Its errors contain no part of the text.
func ParseKey(id string, text []byte) (*Key, error) {
	if id == "" {
		return nil, errors.New("its id is missing")
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it contains no PEM block")
	}
	var private *rsa.PrivateKey
	switch block.Type {
	case "RSA PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, errEncrypted
		}
		k, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, errUnreadableKey
		}
		private = k
	case "PRIVATE KEY":
		k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errUnreadableKey
		}
		var ok bool
		if private, ok = k.(*rsa.PrivateKey); !ok {
			return nil, errors.New("it contains a key that is not an RSA key")
		}
	case "ENCRYPTED PRIVATE KEY":
		return nil, errEncrypted
	default:
		return nil, errors.New("it contains no private key")
	}
	if bits := private.N.BitLen(); bits < minKeyBits {
		return nil, fmt.Errorf("its key has %d bits; at least %d are needed", bits, minKeyBits)
	}
	return &Key{&secret{id, private}}, nil
}

var (
	errEncrypted     = errors.New("its key is encrypted; a key without a passphrase is needed")
	errUnreadableKey = errors.New("its private key cannot be parsed")
)

// The headers of a signed request.
const (
	headerKey       = "KALSHI-ACCESS-KEY"
	headerSignature = "KALSHI-ACCESS-SIGNATURE"
	headerTimestamp = "KALSHI-ACCESS-TIMESTAMP"
)

// Headers returns the headers that sign a request. The signature is RSA-PSS with SHA-256 over the time in milliseconds, the method,
// and the path without its query.
func (k *Key) Headers(method, path string, now time.Time) (http.Header, error) {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	digest := sha256.Sum256([]byte(at + method + path))
	signature, err := rsa.SignPSS(rand.Reader, k.secret.private, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		return nil, errors.New("the request cannot be signed with the API key")
	}
	h := make(http.Header)
	h.Set(headerKey, k.secret.id)
	h.Set(headerSignature, base64.StdEncoding.EncodeToString(signature))
	h.Set(headerTimestamp, at)
	return h, nil
}

const redacted = "[key]"

// String implements fmt.Stringer with a fixed text.
func (Key) String() string { return redacted }

// GoString implements fmt.GoStringer with a fixed text.
func (Key) GoString() string { return redacted }

// Format implements fmt.Formatter with a fixed text for every verb.
func (Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalJSON implements json.Marshaler with a fixed text.
func (Key) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer with a fixed text.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }
