package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"

	"oddsgraph/httpapi"
)

// post asks the graph and decodes the answer; numbers in it are json.Number. It fails no test, so any goroutine may call it.
func (s *service) post(ctx context.Context, query string, variables vars, credentials string, into any) error {
	n := requests.Add(1)
	return s.postFrom(ctx, netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), query, variables, credentials, into)
}

// postFrom is post from a client's address.
func (s *service) postFrom(ctx context.Context, client netip.Addr, query string, variables vars, credentials string, into any) error {
	body := asJSON(vars{"query": query, "variables": variables})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+httpapi.PathGraphQL, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", client.String())
	// The transport keeps connections that it opened in vain. The service closes one that sends no header in time, perhaps just
	// as it is used. With this header the transport asks again on another.
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
	return d.Decode(into)
}
