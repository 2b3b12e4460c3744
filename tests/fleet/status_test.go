//go:build unix

package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// sharedStatus is the value of serviceStatus.shared.
type sharedStatus struct {
	Connected bool
	Since     time.Time
	LastError *string
	Replicas  int
	Limit     *struct {
		Granted, Grantable, Reserve, ReserveUsed int
		HoldUntil                                *time.Time
	}
}

// status returns serviceStatus.shared, or nil if the replica does not use Redis.
func (r *replica) status(t *testing.T) *sharedStatus {
	t.Helper()
	answer := r.must(t, `{ serviceStatus { shared { connected since lastError replicas limit { granted grantable reserve reserveUsed holdUntil } } } }`)
	var body struct {
		Data struct {
			ServiceStatus struct{ Shared *sharedStatus }
		}
	}
	if err := json.Unmarshal([]byte(answer), &body); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return body.Data.ServiceStatus.Shared
}

// TestStatus checks serviceStatus, /readyz and the log of a replica while Redis is paused, after Redis continues, and after the
// venue refuses a call.
func TestStatus(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, PublicPerMinute: limit})
	server.OpenLedger(t, v.URL)
	a, b := start(t, v, sharedFlags(server)...).waitConnected(t), start(t, v, sharedFlags(server)...).waitConnected(t)
	search := func(r *replica, n int) string {
		answer, err := r.ask(fmt.Sprintf(`{ searchMarkets(query: "status %d", first: 1) { nodes { id } } }`, n))
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for i := range 4 {
		search(a, i)
	}
	eventually(t, "the replicas see each other", func() bool { return a.status(t).Replicas == 2 })
	got := a.status(t)
	if l := got.Limit; !got.Connected || got.LastError != nil || time.Since(got.Since).Abs() > time.Minute || l == nil ||
		l.Granted < 4 || l.Granted > len(v.log()) || l.Grantable > usable-4 || l.Grantable < usable-10 || l.Reserve != part || l.ReserveUsed != 0 || l.HoldUntil != nil {
		t.Errorf("after 4 calls the status is %+v with the limit %+v, want connected, with at least 4 granted calls and no hold", got, l)
	}
	if text := a.get(t, "/readyz"); text != "ready\n" {
		t.Errorf("/readyz of a connected replica says %q, want ready", text)
	}

	signal(t, server.Process(), syscall.SIGSTOP)
	for _, r := range []*replica{a, b} {
		eventually(t, "the replica notices that Redis does not answer", func() bool { return !r.status(t).Connected })
	}
	if lost := a.status(t); lost.LastError == nil || *lost.LastError != "Redis did not answer in time" || !lost.Since.After(got.Since) || lost.Replicas != 0 {
		t.Errorf("without Redis the status is %+v, want no other replicas, a later since, and a lastError about Redis", lost)
	}
	if text := a.get(t, "/readyz"); text != "ready\nnothing is shared with other replicas: Redis did not answer in time\n" {
		t.Errorf("/readyz of a replica without Redis says %q, want ready, and why nothing is shared", text)
	}
	signal(t, server.Process(), syscall.SIGCONT)
	for _, r := range []*replica{a, b} {
		eventually(t, "the log says that the replica is connected again", func() bool { return strings.Count(r.log.String(), "Redis answers") == 2 })
		text := r.log.String()
		if n := strings.Count(text, `"msg":"Redis`); n != 3 || strings.Count(text, "Redis does not answer") != 1 || !r.status(t).Connected {
			t.Errorf("the log has %d lines about Redis; want two about connections and one about the loss", n)
		}
	}

	if err := v.faults.Set([]faults.Fault{{Path: "/api/exchange/market-search", Kind: faults.Status, Status: http.StatusTooManyRequests, RetryAfter: "60", Count: 1}}); err != nil {
		t.Fatal(err)
	}
	if answer := search(a, 10); !strings.Contains(answer, "RATE_LIMITED") {
		t.Fatalf("a query whose call the venue refuses got %s, want RATE_LIMITED", answer)
	}
	held := func(s *sharedStatus) bool {
		return s.Limit.HoldUntil != nil && time.Until(*s.Limit.HoldUntil) > 30*time.Second && time.Until(*s.Limit.HoldUntil) <= time.Minute
	}
	if s := a.status(t); !held(s) {
		t.Errorf("the replica with the refused call has the limit %+v, want holdUntil in 30 to 60 s", s.Limit)
	}
	eventually(t, "the other replica has the same holdUntil", func() bool { search(b, 11); return held(b.status(t)) })

	if s := start(t, v).status(t); s != nil {
		t.Errorf("a replica without --shared-url has the status %+v, want null", s)
	}
}
