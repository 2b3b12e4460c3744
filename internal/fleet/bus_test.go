package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowConnectionOfBus checks the result that Config.Observe gets if a connection attempt takes too long, and if the caller
// cancels the attempt.
func TestSlowConnectionOfBus(t *testing.T) {
	for result, patience := range map[string]time.Duration{ResultTimeout: 2 * connectTimeout, ResultCancelled: connectTimeout / 2} {
		synctest.Test(t, func(t *testing.T) {
			var calls observed
			option, err := parse("redis://redis.example")
			if err != nil {
				t.Fatal(err)
			}
			release := make(chan struct{})
			option.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
				<-release
				return nil, errors.New("no connection")
			}
			f := &Fleet{cfg: Config{Observe: calls.note}, option: option}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := f.Bus().Receive(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want a timeout", err)
			}
			close(release)
			f.running.Wait()
			if calls.count("connect "+result) != 1 || len(calls.counts) != 1 {
				t.Errorf("after at most %s: Config.Observe got %v, want only connect %s", patience, calls.counts, result)
			}
		})
	}
}
