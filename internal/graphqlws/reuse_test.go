package graphqlws_test

import (
	"testing"
	"testing/synctest"

	"oddsgraph/internal/graphqlws"
	"oddsgraph/internal/market"
)

// TestEndOfACompletedOperation: the end of an operation waits to be written while its client completes it and uses its id
// again. The client then hears only of the new operation.
func TestEndOfACompletedOperation(t *testing.T) {
	inBubble(t, graphqlws.Config{}, func(t *testing.T, o *operator, r *raw) {
		expect := func(want string) {
			t.Helper()
			if _, payload, err := r.hear(); err != nil || string(payload) != want {
				t.Errorf("the client hears %s, %v, want %s", payload, err, want)
			}
		}
		r.say(initialise)
		expect(`{"type":"connection_ack"}`)
		r.say(subscribing("1", "subscription a"))
		o.publish(t, "subscription a", []byte(`"old"`), market.Append)
		synctest.Wait() // the writer waits for the client to read
		r.say(subscribing("q", "refused"), `{"type":"complete","id":"q"}`, subscribing("q", "subscription b"))
		o.publish(t, "subscription b", []byte(`"new"`), market.Append)
		synctest.Wait()
		expect(`{"id":"1","type":"next","payload":"old"}`)
		expect(`{"id":"q","type":"next","payload":"new"}`)
	})
}
