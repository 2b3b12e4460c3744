package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"

	"oddsgraph/httpapi"
)

// graphResult is a decoded response to a query.
type graphResult struct {
	Data   any
	Errors []graphError
}

// post sends a query from a new client address. It decodes the response into *out, with json.Number for numbers. post returns
// errors instead of failing the test, so any goroutine may call it.
func (s *service) post(ctx context.Context, query string, variables vars, credentials string, out any) error {
	n := requests.Add(1)
	return s.postFrom(ctx, netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), query, variables, credentials, out)
}

// postFrom is like post, but sends the given client address in X-Forwarded-For.
func (s *service) postFrom(ctx context.Context, client netip.Addr, query string, variables vars, credentials string, out any) error {
	body := asJSON(vars{"query": query, "variables": variables})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+httpapi.PathGraphQL, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", client.String())
	// The service may close an unused connection at the moment when the transport begins to use it. Because of this header, the
	// transport then retries the request.
	r.Header.Set("Idempotency-Key", "a query")
	if credentials != anonymous {
		r.Header.Set(httpapi.CredentialsHeader, credentials)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	return d.Decode(out)
}
