package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// load sends the queries that next returns through the balancer until ctx ends. It returns the last response that is not the expected
// one, and the last one that comes from the balancer itself. If want is "", load expects any response.
func (b *deployment) load(ctx context.Context, want string, next func() string) (other, own string, n int) {
	for ; ctx.Err() == nil; n++ {
		resp, err := client.Do(post(ctx, b.url, next()))
		if err != nil {
			if ctx.Err() == nil {
				own = err.Error()
			}
			continue
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case ctx.Err() != nil:
		case err != nil || !bytes.HasPrefix(text, []byte("{")):
			own = fmt.Sprintf("%s: %.200s (%v)", resp.Status, text, err)
		case want != "" && string(text) != want:
			other = string(text)
		}
	}
	return other, own, n
}

// TestOutageBehindBalancer takes the venue, Redis and both away under load. Each response must come from a replica, cached queries must
// be answered as before, and each replica must serve fresh values within 15 seconds after the end.
func TestOutageBehindBalancer(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel()
	b := startDeployment(t)
	token := b.venue.demo.Tokens()[0].TokenID
	const cached = `{ searchMarkets(first: 1) { totalCount } }`
	price := fmt.Sprintf(`{ tokens(tokenIds: [%q]) { price { price freshness { stale } } } }`, token)
	want := ""
	for _, r := range b.replicas {
		want = r.must(t, cached)
		r.must(t, price)
	}
	for i, test := range []struct {
		name         string
		venue, redis bool
		lasts        time.Duration
	}{{"the venue", true, false, time.Minute}, {"Redis", false, true, 20 * time.Second}, {"both", true, true, 20 * time.Second}} {
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		run := func(what, want string, next func() string) {
			all.Go(func() {
				other, own, n := b.load(ctx, want, next)
				if other != "" || own != "" {
					t.Errorf("%s is away: a query for %s got %q, want %q; the balancer itself answered %q, want nothing", test.name, what, other, want, own)
				}
				t.Logf("%s is away: %d queries for %s", test.name, n, what)
			})
		}
		for range 3 {
			run("cached values", want, func() string { time.Sleep(5 * time.Millisecond); return cached })
		}
		for n := range 3 {
			run("other values", "", func() string {
				n += 3
				time.Sleep(100 * time.Millisecond)
				return fmt.Sprintf(`{ searchMarkets(query: "%d %d", first: 1) { totalCount } }`, i, n)
			})
		}
		if test.venue {
			b.venue.away.Store(true)
			b.venue.demo.Restart(4003)
		}
		if test.redis {
			signal(t, b.redis, syscall.SIGSTOP)
		}
		time.Sleep(test.lasts)
		away := "the venue has not answered since "
		if test.redis { // a replica that has used its part of the limit calls nobody, and cannot know whether the venue is away
			away = "Redis did not answer"
		}
		for _, r := range b.replicas {
			if text := r.get(t, "/readyz"); !strings.HasPrefix(text, "ready\n") || !strings.Contains(text, away) {
				t.Errorf("%s is away: /readyz says %q, want ready and %q", test.name, text, away)
			}
		}
		stop()
		all.Wait()
		signal(t, b.redis, syscall.SIGCONT)
		b.venue.away.Store(false)
		back := time.Now()
		if err := b.venue.demo.SetPrice(token, demo.Price(4200+100*i)); err != nil {
			t.Fatal(err)
		}
		fresh := fmt.Sprintf(`"price":"0.4%d","freshness":{"stale":false}`, 2+i)
		for n, r := range b.replicas {
			eventually(t, "the price is fresh", func() bool { answer, err := r.ask(price); return err == nil && strings.Contains(answer, fresh) })
			if took := time.Since(back); took > 15*time.Second {
				t.Errorf("%s was away: replica %d is fresh after %s, want 15 s", test.name, n+1, took)
			} else {
				t.Logf("%s was away: replica %d is fresh after %s", test.name, n+1, took.Round(time.Millisecond))
			}
		}
	}
	if text := b.log.String(); strings.Contains(text, "is DOWN") || strings.Contains(text, http.StatusText(http.StatusServiceUnavailable)) {
		t.Errorf("the balancer removed a replica:\n%s", text)
	}
}
