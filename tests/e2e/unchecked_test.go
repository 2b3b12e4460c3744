package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph/model"
)

// accountFields returns queries and subscriptions for all data of an account, by name.
func accountFields(address string) map[string]string {
	fields := map[string]string{}
	for _, field := range []string{
		"balance { cashBalance }", "positions { totalCount }", "orders { totalCount }", "trades { totalCount }", "history { totalCount }",
		"portfolio { positionsValue }", "portfolio { totalValue availableCash }",
	} {
		fields[field] = fmt.Sprintf(`{ user(address: %q) { %s } }`, address, field)
	}
	for kind, parts := range map[string][]string{model.KindPosition: {address, "m", "YES"}, model.KindOrder: {address, "o"}} {
		fields[kind] = fmt.Sprintf(`{ node(id: %q) { id } }`, model.EncodeID(kind, parts...))
	}
	for _, name := range []string{"balanceChanged", "ordersChanged", "userTradesAdded", "portfolioChanged"} {
		fields[name] = fmt.Sprintf(`subscription { %s(address: %q) { reason } }`, name, address)
	}
	return fields
}

// TestAVenueThatChecksNoCredentials checks account data of a venue that accepts any credentials. Only a client in the accounts file
// may read account data, and only the data of its own account.
func TestAVenueThatChecksNoCredentials(t *testing.T) {
	emptyList := func(url.Values) (int, any) { return http.StatusOK, []any{} }
	v := newStub(t, map[string]func(url.Values) (int, any){
		"balance":   func(url.Values) (int, any) { return http.StatusOK, map[string]any{"cashBalance": "1"} },
		"positions": emptyList, "orders": emptyList, "trades": emptyList, "history": emptyList,
	})
	f := newAccountsFile(t)
	s := start(t, "--venue-url="+v.URL, "--venue-credentials=none", "--accounts-file="+f.path, "--venue-public-per-minute=0", "--venue-key-per-minute=0")
	ask := func(query, header, value string) string {
		r := s.request(t, asJSON(vars{"query": query}), anonymous)
		if header != "" {
			r.Header.Set(header, value)
		}
		if strings.HasPrefix(query, "subscription") {
			r.Header.Set("Accept", "text/event-stream")
		}
		return s.firstAnswer(t, r)
	}
	for field, query := range accountFields(addressOf50) {
		for name, test := range map[string]struct{ header, value, want string }{
			"invented credentials":         {"X-Venue-Credentials", credentials("anything"), `"UNAUTHENTICATED"`},
			"no credentials":               {"", "", `"UNAUTHENTICATED"`},
			"the token of another account": {"Authorization", "Bearer token-of-3", `"FORBIDDEN"`},
		} {
			if got := ask(query, test.header, test.value); !strings.Contains(got, test.want) {
				t.Errorf("%s with %s got %s, want %s", field, name, got, test.want)
			}
		}
	}
	for endpoint, n := range v.asked() {
		if slices.Contains([]string{"balance", "positions", "orders", "trades", "history"}, endpoint) {
			t.Errorf("the venue received %d calls for %s, want none", n[0], endpoint)
		}
	}
	for field, query := range accountFields(addressOf3) {
		if got := ask(query, "Authorization", "Bearer token-of-3"); strings.Contains(got, `"errors"`) && !strings.HasPrefix(query, "subscription") || got == "" {
			t.Errorf("%s with the token of the account got %s, want no error", field, got)
		}
	}
	if got := ask(`{ __typename }`, "X-Venue-Credentials", credentials("anything")); !strings.Contains(got, "bearer token") {
		t.Errorf("the refusal does not ask for a bearer token: %s", got)
	}
}

// firstAnswer returns the first JSON object of a response: the body, or the data of the first server-sent event. firstAnswer
// returns "" if the response has no object.
func (s *service) firstAnswer(t testing.TB, r *http.Request) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := s.client.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text := strings.TrimPrefix(lines.Text(), "data:"); strings.HasPrefix(strings.TrimSpace(text), "{") {
			return text
		}
	}
	return ""
}
