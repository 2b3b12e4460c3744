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
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// Key is an API key of the operator. It is safe for concurrent use.
type Key struct {
	market.Redacted
	secret *secret
}

type secret struct {
	id      string
	private *rsa.PrivateKey
}

// ParseKey parses a PEM text with an RSA key in PKCS #1 or PKCS #8. Its errors contain no part of the text.
func ParseKey(id string, text []byte) (*Key, error) {
	if id == "" {
		return nil, errors.New("its id is missing")
	}
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("it contains no PEM block")
	case block.Type == "ENCRYPTED PRIVATE KEY", block.Headers["DEK-Info"] != "":
		return nil, errors.New("its key is encrypted; a key without a passphrase is needed")
	case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errors.New("it contains no private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			return nil, errors.New("its private key cannot be parsed")
		}
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it contains a key that is not an RSA key")
	}
	return &Key{secret: &secret{id, private}}, nil
}

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
