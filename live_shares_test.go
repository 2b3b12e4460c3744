package main

import (
	"fmt"
	"testing"
)

// TestAClientsExecutions are counted where they are opened, and given back when they end.
func TestAClientsExecutions(t *testing.T) {
	s := startLive(t, "--client-executions=3", "--client-watched=10")
	s.streaming(t)
	ids := s.openTokens(9)
	socket := func() *socket { return s.dial(t, anonymous) }
	literal := ""
	for _, id := range ids[:6] {
		literal += fmt.Sprintf("%q ", id)
	}
	six := `subscription { ...on Subscription { priceChanged(tokenIds: [` + literal + `]) { reason } } }`
	first := socket()
	first.subscribe(t, six, nil).value(t)
	four := socket().subscribe(t, subTrades, vars{"ids": ids[:4]}) // which brings nothing yet
	eventually(t, "a second execution", func() bool { return s.executions() == 2 })

	// Nobody may follow another id, and everybody what is followed already.
	socket().subscribe(t, subPrices, vars{"ids": ids[:1]}).wantEnd(t, "RATE_LIMITED")
	socket().subscribe(t, subStatus, nil).wantEnd(t, "RATE_LIMITED")
	s.sse(t, subStatus, nil, anonymous).wantEnd(t, "RATE_LIMITED")
	again := socket().subscribe(t, six, nil)
	again.value(t)

	// What an execution held is free when the last of its readers has gone.
	again.stop()
	first.close()
	open := socket()
	eventually(t, "room for a second execution", func() bool {
		return !open.subscribe(t, subPrices, vars{"ids": ids[:1]}).next(t).refused
	})
	open.subscribe(t, subPrices, vars{"ids": ids[1:2]}).value(t)
	open.subscribe(t, subPrices, vars{"ids": ids[2:3]}).wantEnd(t, "RATE_LIMITED") // a fourth execution
	four.stop()
}
