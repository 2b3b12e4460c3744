package kalshi

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

var newPrivate = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// pkcs8 encodes a key in the form PKCS #8.
func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestSignature verifies the signed headers with the public key, as the venue does.
func TestSignature(t *testing.T) {
	private := newPrivate()
	for kind, der := range map[string][]byte{"PRIVATE KEY": pkcs8(t, private), "RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(private)} {
		key, err := ParseKey("my-key", block(kind, der))
		if err != nil {
			t.Fatalf("ParseKey of a block %s returns %v", kind, err)
		}
		h, err := key.Headers("GET", "/trade-api/ws/v2", time.UnixMilli(1_795_000_000_123))
		if err != nil {
			t.Fatal(err)
		}
		if h.Get("Kalshi-Access-Key") != "my-key" || h.Get("Kalshi-Access-Timestamp") != "1795000000123" {
			t.Errorf("with a block %s, the headers are %v", kind, h)
		}
		signature, err := base64.StdEncoding.DecodeString(h.Get("Kalshi-Access-Signature"))
		if err != nil {
			t.Fatal(err)
		}
		digest := sha256.Sum256([]byte("1795000000123GET/trade-api/ws/v2"))
		if err := rsa.VerifyPSS(&private.PublicKey, crypto.SHA256, digest[:], signature, &rsa.PSSOptions{SaltLength: sha256.Size}); err != nil {
			t.Errorf("with a block %s, the signature is invalid: %v", kind, err)
		}
	}
}

func TestBadKeys(t *testing.T) {
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		id   string
		text []byte
		want string
	}{
		"no id":         {"", block("PRIVATE KEY", pkcs8(t, newPrivate())), "id is missing"},
		"no PEM":        {"k", []byte("TOPSECRET"), "contains no PEM block"},
		"certificate":   {"k", block("CERTIFICATE", []byte("TOPSECRET")), "contains no private key"},
		"broken PKCS#8": {"k", block("PRIVATE KEY", []byte("TOPSECRET")), "cannot be parsed"},
		"broken PKCS#1": {"k", block("RSA PRIVATE KEY", []byte("TOPSECRET")), "cannot be parsed"},
		"encrypted":     {"k", block("ENCRYPTED PRIVATE KEY", []byte("TOPSECRET")), "is encrypted"},
		"elliptic":      {"k", block("PRIVATE KEY", pkcs8(t, elliptical)), "not an RSA key"},
	} {
		_, err := ParseKey(test.id, test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "TOPSECRET") {
			t.Errorf("%s: ParseKey returns the error %v, want an error with %q and without the text", name, err, test.want)
		}
	}
}

// TestKeyIsNeverPrinted checks that fmt, encoding/json and log/slog print neither the private key nor the id.
func TestKeyIsNeverPrinted(t *testing.T) {
	key, err := ParseKey("SECRETID", block("PRIVATE KEY", pkcs8(t, newPrivate())))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", key, "struct", struct{ Key *Key }{key})
	encoded, _ := json.Marshal(map[string]any{"key": key})
	all := log.String() + string(encoded) + fmt.Sprintf("%v %+v %#v %s %d %v", key, key, key, key, key, *key)
	if n := newPrivate().D.String(); strings.Contains(all, "SECRETID") || strings.Contains(all, n[:20]) {
		t.Errorf("the key is printed: %s", all)
	}
}
