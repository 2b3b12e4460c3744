package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/market"
)

const (
	maxSize     = 8 << 20
	maxAccounts = 10_000
	// maxName is the greatest number of characters in a name.
	maxName = 64
	// maxSubject is the greatest number of bytes in a subject.
	maxSubject = 255
)

// digest is the SHA-256 of a token.
type digest [sha256.Size]byte

// identifiers are what identifies an account in a request: a token, the subject of a JWT, or both. If token is true, digest is the
// hash of the token. If the account has no subject, subject is empty.
type identifiers struct {
	token   bool
	digest  digest
	subject string
}

type entry struct {
	identifiers
	name        string
	address     market.Address
	credentials *market.Credentials
}

// parse parses an accounts file. Its errors say what the right form is. An error about an account contains the index of the
// account. The errors never quote the file, not even unknown field names, because a name may be a secret if the file has the wrong
// form.
func parse(content []byte) ([]entry, error) {
	top, err := fields(content, "version", "accounts")
	if err != nil {
		return nil, err
	}
	if string(top["version"]) != "1" {
		return nil, errors.New("version must be 1")
	}
	list := top["accounts"]
	if len(list) == 0 || list[0] != '[' {
		return nil, errors.New("accounts must be a list; for no accounts write []")
	}
	var entries []entry
	places, subjects := map[digest]int{}, map[string]int{}
	err = filewatch.Elements(list, func(i int, value json.RawMessage) error {
		if i == maxAccounts {
			return fmt.Errorf("there are more than %d accounts", maxAccounts)
		}
		e, err := parseEntry(value)
		if err != nil {
			return fmt.Errorf("accounts[%d]: %w", i, err)
		}
		if first, taken := places[e.digest]; taken && e.token {
			return fmt.Errorf("accounts[%d]: tokenSha256 is the same as in accounts[%d]; a token stands for one account", i, first)
		}
		if first, taken := subjects[e.subject]; taken && e.subject != "" {
			return fmt.Errorf("accounts[%d]: subject is the same as in accounts[%d]; a subject stands for one account", i, first)
		}
		places[e.digest], subjects[e.subject] = i, i
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

func parseEntry(object []byte) (e entry, err error) {
	f, err := fields(object, "tokenSha256", "subject", "address", "credentials", "name")
	if err != nil {
		return e, err
	}
	if e.identifiers, err = parseIdentifiers(f["tokenSha256"], f["subject"]); err != nil {
		return e, err
	}
	address, _ := filewatch.Text(f["address"])
	if e.address, err = market.ParseAddress(address); err != nil {
		return e, errors.New("address must be 0x and 40 hex digits")
	}
	if e.credentials, err = parseCredentials(f["credentials"], e.address); err != nil {
		return e, err
	}
	if name, given := f["name"]; given {
		var ok bool
		e.name, ok = filewatch.Text(name)
		if !ok || e.name == "" || utf8.RuneCountInString(e.name) > maxName || strings.ContainsFunc(e.name, unprintable) {
			return e, fmt.Errorf("name must be a string of 1 to %d printable characters", maxName)
		}
	}
	return e, nil
}

// parseIdentifiers parses the fields tokenSha256 and subject of an account. A parameter is nil if the field is absent. At least one
// field must be present.
func parseIdentifiers(token, subject json.RawMessage) (h identifiers, err error) {
	if subject != nil {
		text, ok := filewatch.Text(subject)
		if !ok || text == "" || len(text) > maxSubject || strings.ContainsFunc(text, unprintable) {
			return h, fmt.Errorf("subject must be a string of 1 to %d printable bytes", maxSubject)
		}
		h.subject = text
		if token == nil {
			return h, nil
		}
	}
	h.token = true
	h.digest, err = parseDigest(token)
	return h, err
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func parseDigest(value json.RawMessage) (d digest, err error) {
	text, _ := filewatch.Text(value)
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != len(d) {
		return d, errors.New("tokenSha256 must be the SHA-256 of the token in 64 hex digits")
	}
	if d = digest(sum); d == sha256.Sum256(nil) || d == sha256.Sum256([]byte("\n")) {
		return d, errors.New("tokenSha256 is the hash of an empty text; the token was empty when the hash was computed")
	}
	return d, nil
}

// parseCredentials parses the credentials of an account with the given address. The service sends the credentials to the venue as
// they are written in the file.
func parseCredentials(value json.RawMessage, address market.Address) (*market.Credentials, error) {
	if len(value) == 0 || value[0] != '{' {
		return nil, errors.New("credentials must be an object such as {\"apiKey\":…,\"secret\":…,\"passphrase\":…}")
	}
	c, err := market.ParseCredentials(value)
	var known *market.Error
	if errors.As(err, &known) {
		return nil, errors.New(known.Message) // the message quotes nothing from the file
	}
	named, stated := c.Address()
	switch {
	case len(bytes.TrimSpace(value[1:])) == 1:
		return nil, errors.New("credentials are empty")
	case stated && named != address:
		return nil, errors.New("credentials name another address than the one beside them")
	}
	return c.ForAccount(address), nil
}

// fields returns an object's members by name. It returns an error for a repeated name, and for a name that is not in the list of
// known names.
func fields(object []byte, known ...string) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(known))
	err := filewatch.Members(object, func(name string, value json.RawMessage) error {
		if !slices.Contains(known, name) {
			return errors.New("there is an unknown field; the fields are " + strings.Join(known, ", "))
		}
		if _, repeated := out[name]; repeated {
			return errors.New("the field " + name + " is present twice")
		}
		out[name] = value
		return nil
	})
	return out, err
}
