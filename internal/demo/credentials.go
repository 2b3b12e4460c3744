package demo

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// maxCredentials bounds the credentials of a request, in bytes.
const maxCredentials = 4 << 10

// account is an API key and the wallet that it opens.
type account struct {
	key       string
	address   string // the only one that the key reads; empty is every one
	positions int
}

// accounts are the demo accounts: the address of each trades while the venue moves and always holds as many positions.
// The secret and the passphrase of every key are "demo".
var accounts = []account{
	{"demo-3", "0x1111111111111111111111111111111111111111", 3},
	{"demo-50", "0x2222222222222222222222222222222222222222", 50},
	{"demo-2000", "0x3333333333333333333333333333333333333333", 2000},
}

// anyAccount is the key that reads every address.
var anyAccount = account{key: "demo"}

// accountOf returns the account of the request's credentials, or nil when there are none or they are not valid. They come
// as URL-encoded JSON in the query or as base64 JSON in a header; fields that the venue doesn't know are ignored.
func accountOf(c *call) *account {
	raw := []byte(c.get("credentials"))
	if len(raw) == 0 {
		header := c.r.Header.Get("X-Api-Credentials")
		if len(header) > maxCredentials {
			return nil
		}
		var err error
		if raw, err = base64.StdEncoding.DecodeString(header); err != nil {
			return nil
		}
	}
	return accountFor(raw)
}

// accountFor returns the account of credentials in JSON, or nil when they are not valid.
func accountFor(raw []byte) *account {
	if len(raw) == 0 || len(raw) > maxCredentials {
		return nil
	}
	var given struct {
		APIKey     string `json:"apiKey"`
		Secret     string `json:"secret"`
		Passphrase string `json:"passphrase"`
	}
	if json.Unmarshal(raw, &given) != nil || given.Secret != "demo" || given.Passphrase != "demo" {
		return nil
	}
	if given.APIKey == anyAccount.key {
		return &anyAccount
	}
	for i := range accounts {
		if accounts[i].key == given.APIKey {
			return &accounts[i]
		}
	}
	return nil
}

// authorize checks the credentials and the address of a request to a user endpoint.
func (c *call) authorize() *apiError {
	address, ok := parseAddress(c.get("address"))
	switch {
	case c.account == nil:
		return errKey
	case !ok:
		return badRequest("address is 0x and 40 hexadecimal digits")
	case c.account.address != "" && c.account.address != address:
		return errOwner
	}
	return nil
}

// parseAddress returns a wallet address in lower case.
func parseAddress(s string) (string, bool) {
	s = strings.ToLower(s)
	if len(s) != 42 || s[:2] != "0x" {
		return "", false
	}
	for _, c := range []byte(s[2:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", false
		}
	}
	return s, true
}
