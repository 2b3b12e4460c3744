package rest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/percent"
)

// maxMessage is the greatest length in bytes of a venue's text in a log line.
const maxMessage = 200

// minRedacted is the minimum length in bytes of a value from a GraphQL client that is redacted. A shorter value could occur in a
// text by chance.
const minRedacted = 8

// newRedactor returns a function that replaces credentials, the values of the signature and the results of clientValues in a text of
// the venue by "[redacted]", in whatever way the text encodes them for a URL. The function also cuts the text after maxMessage bytes,
// and replaces control characters by spaces.
func newRedactor(credentials *market.Credentials, rq *Request, signature http.Header) func(string) string {
	return func(s string) string {
		secrets := append(secretsOf(credentials), clientValues(rq)...)
		for _, values := range signature {
			secrets = append(secrets, values...)
		}
		s = replaceSecrets(s, secrets)
		if len(s) > maxMessage {
			cut := maxMessage
			for cut > 0 && !utf8.RuneStart(s[cut]) {
				cut--
			}
			s = s[:cut] + "…"
		}
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, s)
	}
}

// replaceSecrets replaces the secrets in s by "[redacted]", until the result is longer than maxMessage. It compares the folded texts,
// and prefers longer secrets.
func replaceSecrets(s string, secrets []string) string {
	folded := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		text, _ := fold(secret)
		folded = append(folded, string(text))
	}
	slices.SortFunc(folded, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	folded = slices.DeleteFunc(slices.Compact(folded), func(secret string) bool { return secret == "" })
	text, starts := fold(s)
	rest, out := string(text), ""
	for at := 0; rest != "" && len(out) <= maxMessage; {
		n := 1
		if i := slices.IndexFunc(folded, func(secret string) bool { return strings.HasPrefix(rest, secret) }); i >= 0 {
			n, out = len(folded[i]), out+"[redacted]"
		} else {
			out += s[starts[at]:starts[at+1]]
		}
		at, rest = at+n, rest[n:]
	}
	return out
}

// fold returns the form of s in which texts and secrets are compared: without percent-encoding, in lower case, and with spaces for
// plus signs. starts is the second result of percent.Decode.
func fold(s string) (text []byte, starts []int) {
	text, starts = percent.Decode(s)
	for i, c := range text {
		switch {
		case c == '+':
			text[i] = ' '
		case c >= 'A' && c <= 'Z':
			text[i] = c | 0x20
		}
	}
	return text, starts
}

// minRedactedName is the minimum length in bytes of a redacted name in the JSON object of the credentials. The quotes count. A
// shorter name, for example passphrase, usually describes its value and is not secret.
const minRedactedName = 20

// secretsOf returns the secrets in the credentials in all their spellings. The secrets are the whole JSON object and each text and
// number in the object. Names shorter than minRedactedName are not secrets.
func secretsOf(credentials *market.Credentials) []string {
	if credentials == nil {
		return nil
	}
	text := credentials.Wire() // Wire returns valid JSON
	secrets := spellings(text)
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		start := d.InputOffset()
		token, err := d.ReadToken()
		if err != nil {
			return secrets
		}
		literal := strings.TrimLeft(text[start:d.InputOffset()], " \t\r\n:,")
		in, values := d.StackIndex(d.StackDepth())
		isName := in == jsontext.KindBeginObject && values%2 == 1
		if kind := token.Kind(); kind == '0' || kind == '"' && !(isName && len(literal) < minRedactedName) {
			secrets = append(append(secrets, spellings(token.String())...), strings.Trim(literal, `"`))
		}
	}
}

// ownParameters are the parameters whose values are not redacted: addresses, numbers, times, and words from a fixed set.
var ownParameters = []string{"address", "depth", "endDate", "endsAfter", "endsBefore", "from", "limit", "offset", "order", "sort", "startDate", "status", "to", "type"}

// clientValues returns the values in rq.Query that a GraphQL client has chosen, each in all its spellings. It leaves out the values
// of ownParameters and values shorter than minRedacted. It reads neither Request.Path nor Request.Body, because they contain only
// ids, slugs and times of public data.
func clientValues(rq *Request) (words []string) {
	values, _ := url.ParseQuery(rq.Query.String()) // the query is valid, because this package has built it
	for name, value := range values {
		if slices.Contains(ownParameters, name) {
			continue
		}
		for word := range strings.SplitSeq(strings.Join(value, ","), ",") {
			if len(word) >= minRedacted {
				words = append(words, spellings(word)...)
			}
		}
	}
	return words
}

// spellings returns s and its forms in JSON and base64. The forms in URLs are equal to s after fold.
func spellings(s string) []string {
	escaped, _ := json.Marshal(s)
	return []string{
		s, strings.Trim(string(escaped), `"`),
		base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
	}
}
