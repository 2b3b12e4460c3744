package demo

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

const maxCredentials = 4 << 10

type account struct {
	key       string
	address   string // the only wallet that the key may read; if empty, the key may read every wallet
	positions int
}

// accounts are the demo accounts. Their trades in Venue.Step neither open nor close positions. The secret and the passphrase of
// every key are "demo".
var accounts = []account{
	{"demo-3", "0x1111111111111111111111111111111111111111", 3},
	{"demo-50", "0x2222222222222222222222222222222222222222", 50},
	{"demo-2000", "0x3333333333333333333333333333333333333333", 2000},
}

var anyAccount = account{key: "demo"}

// Account is a demo account as clients see it.
type Account struct {
	// Key is the API key, Address the wallet address.
	Key, Address string
	// Credentials is a JSON object with the API key, the secret and the passphrase.
	Credentials string
}

// Accounts returns the demo accounts.
func Accounts() []Account {
	out := make([]Account, len(accounts))
	for i, a := range accounts {
		out[i] = Account{a.key, a.address, a.text()}
	}
	return out
}

// text returns the credentials of the account in JSON, in the form that the README shows.
func (a *account) text() string {
	return `{"apiKey":"` + a.key + `","secret":"demo","passphrase":"demo"}`
}

// accountOf returns the account of the request's credentials, or nil if the credentials are missing or not valid. It reads the JSON
// of the credentials from the query. If the query has no credentials and the venue is not strict, it reads base64-encoded JSON from
// the header X-Api-Credentials.
func (v *Venue) accountOf(c *call) *account {
	raw := []byte(c.get("credentials"))
	if len(raw) == 0 && !v.config.Strict {
		header := c.r.Header.Get("X-Api-Credentials")
		if len(header) > maxCredentials {
			return nil
		}
		var err error
		if raw, err = base64.StdEncoding.DecodeString(header); err != nil {
			return nil
		}
	}
	return v.accountFor(raw)
}

// accountFor returns the account of credentials in JSON, or nil if they are not valid. A strict venue compares raw byte by byte.
// Other venues decode raw and ignore unknown fields.
func (v *Venue) accountFor(raw []byte) *account {
	if len(raw) == 0 || len(raw) > maxCredentials {
		return nil
	}
	if v.config.Strict {
		return findAccount(func(a *account) bool { return a.text() == string(raw) })
	}
	var given struct {
		APIKey     string `json:"apiKey"`
		Secret     string `json:"secret"`
		Passphrase string `json:"passphrase"`
	}
	if json.Unmarshal(raw, &given) != nil || given.Secret != "demo" || given.Passphrase != "demo" {
		return nil
	}
	return findAccount(func(a *account) bool { return a.key == given.APIKey })
}

func findAccount(fits func(*account) bool) *account {
	if fits(&anyAccount) {
		return &anyAccount
	}
	if i := slices.IndexFunc(accounts, func(a account) bool { return fits(&a) }); i >= 0 {
		return &accounts[i]
	}
	return nil
}

func (c *call) authorize() {
	address, ok := parseAddress(c.get("address"))
	switch {
	case c.account == nil:
		c.fail(errKey)
	case !ok:
		c.refuse("address is 0x and 40 hexadecimal digits")
	case c.account.address != "" && c.account.address != address:
		c.fail(errOwner)
	}
}

// parseAddress returns s in lower case, or false if s is not a wallet address.
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
