package venue

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"oddsgraph/internal/market"
)

// maxMessage bounds a text of the venue in a log line.
const maxMessage = 200

// minWord is the least size of what a client has said that is cut out of the venue's texts: shorter ones are in every text.
const minWord = 8

// redactor returns a function that cuts the values of the credentials, and what a client asked for by rq, out of a text of the
// venue, then shortens it.
func redactor(credentials *market.Credentials, rq *request) func(string) string {
	return func(s string) string {
		var pairs []string
		for _, secret := range append(secretsOf(credentials), wordsOf(rq)...) {
			pairs = append(pairs, secret, "[redacted]")
		}
		s = strings.NewReplacer(pairs...).Replace(s)
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

// minName is the least size of a member's name in credentials that is cut out of the venue's texts: a shorter one, such as
// passphrase, says what the value is and is no secret.
const minName = 20

// secretsOf returns every spelling of the credentials that a venue could echo, the longest first: of the whole object, and of
// each text and number in it, however deep.
func secretsOf(credentials *market.Credentials) []string {
	if credentials == nil {
		return nil
	}
	text := credentials.Wire() // which is valid JSON
	secrets := spellings(text)
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '"':
			literal := quoted(text[at:])
			at += len(literal)
			name := strings.HasPrefix(strings.TrimLeft(text[at:], " \t\r\n"), ":")
			if name && len(literal) < minName {
				continue
			}
			var decoded string
			if json.Unmarshal([]byte(literal), &decoded) == nil {
				secrets = append(append(secrets, spellings(decoded)...), literal[1:len(literal)-1])
			}
		case c == '-', c >= '0' && c <= '9':
			number := text[at : len(text)-len(strings.TrimLeft(text[at:], "+-.0123456789Ee"))]
			secrets = append(secrets, spellings(number)...)
			at += len(number)
		default:
			at++
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.DeleteFunc(slices.Compact(secrets), func(s string) bool { return s == "" })
}

// ownWords are the parameters whose values are words of ours.
var ownWords = []string{"address", "depth", "endDate", "endsAfter", "endsBefore", "from", "limit", "offset", "order", "sort", "startDate", "status", "to", "type"}

// wordsOf returns every spelling of the values in a request that a client has chosen.
func wordsOf(rq *request) (words []string) {
	values, _ := url.ParseQuery(rq.query.b.String()) // which is our own
	for name, value := range values {
		if slices.Contains(ownWords, name) {
			continue
		}
		for word := range strings.SplitSeq(value[0], ",") {
			if len(word) >= minWord {
				words = append(words, spellings(word)...)
			}
		}
	}
	return words
}

// quoted returns the JSON string that a valid JSON text begins with.
func quoted(text string) string {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
	return text
}

func spellings(s string) []string {
	escaped, _ := json.Marshal(s)
	return []string{
		s, url.QueryEscape(s), url.PathEscape(s), strings.Trim(string(escaped), `"`),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
	}
}
