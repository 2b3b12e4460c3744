package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"oddsgraph/internal/market"
)

// CredentialsHeader carries a caller's venue credentials: base64 of a JSON object {apiKey, secret, passphrase[, address]}.
const CredentialsHeader = "X-Venue-Credentials"

// identify puts the caller's credentials into the request's context and takes them out of its headers. A request without
// any is anonymous; one with bad ones is refused rather than answered as somebody else.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(CredentialsHeader)
		if len(values) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		c, err := parseHeader(values)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		r = r.Clone(market.WithCredentials(r.Context(), c))
		r.Header.Del(CredentialsHeader)
		next.ServeHTTP(w, r)
	})
}

func parseHeader(values []string) (*market.Credentials, error) {
	if len(values) > 1 {
		return nil, market.Errorf(market.CodeBadUserInput, "the header %s was sent %d times; send it once", CredentialsHeader, len(values))
	}
	text := strings.TrimRight(strings.TrimSpace(values[0]), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	b, err := encoding.DecodeString(text)
	if err != nil {
		return nil, market.Errorf(market.CodeBadUserInput, "the header %s is not base64", CredentialsHeader)
	}
	return market.ParseCredentials(b)
}

// refuse answers a request that cannot be executed in the form of a GraphQL response.
func refuse(w http.ResponseWriter, status int, err error) {
	message, code := "the request was refused", market.CodeBadUserInput
	var known *market.Error
	if errors.As(err, &known) {
		message, code = known.Message, known.Code
	}
	body, err := json.Marshal(map[string]any{"errors": []any{map[string]any{
		"message": message, "extensions": map[string]any{"code": code},
	}}})
	if err != nil {
		panic("httpapi: " + err.Error()) // strings can't fail
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
