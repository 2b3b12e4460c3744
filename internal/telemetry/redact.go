package telemetry

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"oddsgraph/internal/market/percent"
)

const redacted = "[redacted]"

// secretEndings are endings of secret names. The comparison ignores case, '-', '_' and '.'.
var secretEndings = []string{
	"credentials", "authorization", "apikey", "secret", "passphrase", "password", "cookie", "cookies", "bearer", "signature",
}

// secretNames are further secret names. Harmless names may end with token or key, so these words are not in secretEndings.
var secretNames = map[string]bool{
	"token": true, "accesstoken": true, "refreshtoken": true, "bearertoken": true, "authtoken": true, "sessiontoken": true,
	"idtoken": true, "privatekey": true,
}

// separators removes the characters between the words of a name.
var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// secretName reports whether a key is the name of a secret. tokenId and similar names are not secret, because they name ids of the
// venue.
func secretName(key string) bool {
	folded := separators.Replace(strings.ToLower(key))
	return secretNames[folded] || slices.ContainsFunc(secretEndings, func(ending string) bool { return strings.HasSuffix(folded, ending) })
}

const names = `credentials|authorization|api[-_]?key|secret|passphrase|password|cookie|signature|token`

var (
	urls = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `\\]+`)
	// query matches a secret parameter of a URL without scheme: /api/user/orders?credentials=…
	query = regexp.MustCompile(`(?i)([?&](?:[a-z_-]*(?:` + names + `))=)[^\s"'&]*`)
	// field matches a secret member in JSON. escaped matches a secret member in JSON that is inside a JSON string. member matches a
	// secret member of a struct or map that fmt has printed.
	field   = regexp.MustCompile(`(?i)("[a-z_-]*(?:` + names + `)"\s*:\s*)(?:"(?:[^"\\]|\\.)+"|-?[0-9][^\s,}\]]*)`)
	escaped = regexp.MustCompile(`(?i)(\\+"[a-z_-]*(?:` + names + `)\\+"\s*:\s*\\+").*?(\\+")`)
	member  = regexp.MustCompile(`(?i)(\b[a-z_-]*(?:` + names + `):)(\[[^\]]*\]|[^\s,}\]]+)`)
	// object matches a JSON member for credentials whose value is an object or a list, and all text after this member.
	object = regexp.MustCompile(`(?is)("[a-z_-]*credentials"\s*:\s*)[{\[].*`)
	// scheme matches the value of an Authorization header.
	scheme = regexp.MustCompile(`\b((?i:bearer)|Basic) +[A-Za-z0-9._~+/=-]{4,}`)
)

// words matches the words of a text that contain percent-encoding.
var words = regexp.MustCompile(`[^\s"'<>]*%[0-9A-Fa-f]{2}[^\s"'<>]*`)

// redactText removes secrets from a text: user info of URLs, secret parameters and members, and Authorization values. It
// removes the whole query of a URL that has user info or a secret parameter. If a word contains a secret after its percent-encoding
// is decoded, redactText replaces the word by the decoded word without the secret.
func redactText(s string) string {
	s = redactPlain(s)
	if !strings.ContainsRune(s, '%') {
		return s
	}
	return words.ReplaceAllStringFunc(s, func(word string) string {
		decoded, _ := percent.Decode(word)
		if clean := redactPlain(string(decoded)); clean != string(decoded) {
			return clean
		}
		return word
	})
}

// redactPlain is redactText without decoding.
func redactPlain(s string) string {
	if strings.Contains(s, "://") {
		s = urls.ReplaceAllStringFunc(s, redactURL)
	}
	if strings.ContainsRune(s, '=') {
		s = query.ReplaceAllString(s, "${1}"+redacted)
	}
	if strings.ContainsRune(s, ':') {
		s = object.ReplaceAllString(s, `${1}"`+redacted+`"`)
		s = field.ReplaceAllString(s, `${1}"`+redacted+`"`)
		s = escaped.ReplaceAllString(s, "${1}"+redacted+"${2}")
		s = member.ReplaceAllString(s, "${1}"+redacted)
	}
	if strings.ContainsRune(s, ' ') {
		s = scheme.ReplaceAllString(s, "${1} "+redacted)
	}
	return s
}

// redactURL returns a URL without secrets. If the URL has user info, or its query or fragment may contain a secret, redactURL
// removes the user info, the query and the fragment.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		// Any part of an invalid URL may be secret, so keep only the scheme.
		before, _, _ := strings.Cut(s, "://")
		return before + "://" + redacted
	}
	secret := u.User != nil
	separates := func(r rune) bool { return strings.ContainsRune("&;/?!#", r) } // a fragment may begin with a path
	for part := range strings.FieldsFuncSeq(u.RawQuery+"&"+u.EscapedFragment(), separates) {
		name, _, _ := strings.Cut(part, "=")
		if unescaped, err := url.QueryUnescape(name); err != nil || secretName(unescaped) || strings.EqualFold(unescaped, "key") {
			secret = true
		}
	}
	if !secret {
		return s
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// redact is a ReplaceAttr function for slog. The parameter groups contains the names of the groups around the attribute.
func redact(groups []string, a slog.Attr) slog.Attr {
	if secretName(a.Key) || slices.ContainsFunc(groups, secretName) {
		return slog.String(a.Key, redacted)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(redactText(a.Value.String()))
	case slog.KindAny:
		if text, secret := redactPrinted(a.Value.Any()); secret {
			a.Value = slog.StringValue(text)
		}
	}
	return a
}

// redactPrinted reports whether the text of v that fmt or JSON prints contains a secret. If so, it returns the redacted text.
func redactPrinted(v any) (text string, secret bool) {
	switch v := v.(type) {
	case nil, slog.Level, *slog.Source:
		return "", false
	case []byte:
		text = string(v)
	case json.RawMessage:
		text = string(v)
	default:
		text = fmt.Sprintf("%+v", v)
	}
	if clean := redactText(text); clean != text {
		return clean, true
	}
	if _, ok := v.(error); ok {
		return "", false
	}
	// fmt prints nested pointers as addresses, but JSON follows them.
	b, err := json.Marshal(v)
	if err != nil {
		return "", false
	}
	text = redactText(string(b))
	return text, text != string(b)
}
