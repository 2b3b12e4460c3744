package persisted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/market"
)

const (
	maxID = 256
	// hashPrefix is the prefix of an id that is the SHA-256 of the document's text.
	hashPrefix = "sha256:"
	// customPrefix begins every prefix except hashPrefix. For example, the id x-relay:1 has the prefix x-relay.
	customPrefix = "x-"
)

// hash is the SHA-256 of a document's text.
type hash [sha256.Size]byte

func hashOf(text string) hash { return sha256.Sum256([]byte(text)) }

// id names a document by its hash, or by another id from a manifest. The zero value names no document.
type id struct {
	hash   hash
	hashed bool
	custom string
}

func (i id) isSet() bool { return i.hashed || i.custom != "" }

const idForm = "sha256: followed by the 64 hex digits of the SHA-256 of the document's text, or an id of letters, digits and - . _ ~ after an optional prefix x-…:"

// parseID parses an id as GraphQL over HTTP defines it: sha256:…, x-…:… or an id without a colon. An id of 64 hex digits is also
// a hash.
func parseID(s string) (id, error) {
	if len(s) > maxID {
		return id{}, market.Errorf(market.CodeBadUserInput, "a document id is at most %d characters long", maxID)
	}
	digits, reserved := strings.CutPrefix(s, hashPrefix)
	if h, ok := parseHash(digits); ok {
		return id{hash: h, hashed: true}, nil
	}
	name := s
	if before, after, colon := strings.Cut(s, ":"); colon {
		if !strings.HasPrefix(before, customPrefix) || before == customPrefix || !isUnreserved(before) {
			reserved = true // all other prefixes are reserved
		}
		name = after
	}
	if reserved || !isUnreserved(name) || strings.Trim(name, ".") == "" { // an id of dots cannot be a path segment of a URL
		return id{}, market.Errorf(market.CodeBadUserInput, "a document id is %s", idForm)
	}
	return id{custom: s}, nil
}

func parseHash(digits string) (h hash, ok bool) {
	if len(digits) != hex.EncodedLen(len(h)) {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(digits))
	return h, err == nil
}

// isUnreserved reports whether s is not empty and contains only unreserved characters of a URL.
func isUnreserved(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	return s != ""
}

// parseExtension parses the member persistedQuery of a request's extensions. extensions is a JSON object, or empty. If the
// member is missing or null, parseExtension returns the zero id.
func parseExtension(extensions json.RawMessage) (id, error) {
	if len(extensions) == 0 {
		return id{}, nil
	}
	var outer struct {
		PersistedQuery json.RawMessage `json:"persistedQuery"`
	}
	if json.Unmarshal(extensions, &outer) != nil {
		return id{}, market.Errorf(market.CodeBadUserInput, "extensions must be an object")
	}
	if len(outer.PersistedQuery) == 0 || string(outer.PersistedQuery) == "null" {
		return id{}, nil
	}
	var inner struct {
		Version json.RawMessage `json:"version"`
		Hash    json.RawMessage `json:"sha256Hash"`
	}
	if json.Unmarshal(outer.PersistedQuery, &inner) != nil {
		return id{}, market.Errorf(market.CodeBadUserInput, "extensions.persistedQuery must be an object")
	}
	if string(inner.Version) != "1" {
		return id{}, market.Errorf(market.CodeBadUserInput, "unsupported persisted query version: send extensions.persistedQuery.version 1")
	}
	text, ok := filewatch.Text(inner.Hash)
	if !ok {
		return id{}, market.Errorf(market.CodeBadUserInput, "extensions.persistedQuery.sha256Hash must be a string")
	}
	return parseID(text)
}
