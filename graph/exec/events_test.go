package exec_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph"
	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/resolvers"
)

// oneEvent resolves each subscription with one event. The nested fields of the event read from the universe.
type oneEvent struct {
	graph.SubscriptionResolver
	u *universe
}

func (p panicky) Subscription() graph.SubscriptionResolver {
	return oneEvent{p.Resolver.Subscription(), p.u}
}

func singleEvent[T any](event T) (<-chan T, error) {
	events := make(chan T, 1)
	events <- event
	close(events)
	return events, nil
}

func (e oneEvent) PriceChanged(_ context.Context, ids []string, _ *int) (<-chan model.PriceUpdate, error) {
	if len(ids) == 0 {
		return nil, market.Errorf(market.CodeBadUserInput, "there are no ids")
	}
	r := e.u.random("event " + ids[0])
	quote := &market.Price{TokenID: ids[0], Price: price(r), Basis: market.BasisVenue, Timestamp: instant(r)}
	return singleEvent(model.PriceUpdate{Reason: model.UpdateReasonChange, Price: model.TokenPrice{Quote: quote, Meta: e.u.meta(r)}})
}

func (e oneEvent) MarketChanged(_ context.Context, ids []string) (<-chan model.MarketUpdate, error) {
	n := e.u.random(fmt.Sprint("event ", len(ids))).IntN(markets)
	if len(ids) == 0 {
		panic("there are no ids")
	}
	return singleEvent(model.MarketUpdate{Reason: model.UpdateReasonInitial, Market: model.Market{Market: e.u.market(n, true), Meta: e.u.meta(e.u.random("event"))}})
}

func (e oneEvent) OrdersChanged(_ context.Context, a market.Address, _ *string) (<-chan model.OrdersUpdate, error) {
	update := model.OrdersUpdate{Reason: model.UpdateReasonChange, Changed: []model.Order{}, ClosedOrderIds: []string{"a", "b"}}
	orders := e.u.orders(a)
	for i := range orders {
		update.Changed = append(update.Changed, model.Order{Order: &orders[i], Address: a})
	}
	return singleEvent(update)
}

func (e oneEvent) BalanceChanged(context.Context, market.Address, *string) (<-chan model.BalanceUpdate, error) {
	return singleEvent(model.BalanceUpdate{Reason: model.UpdateReasonResync})
}

func (e oneEvent) StreamStatusChanged(context.Context, *string) (<-chan model.StreamStatus, error) {
	return singleEvent(model.StreamStatus{State: model.StreamStateLive, Since: now})
}

// eventByLibrary executes the only event of a subscription with gqlgen in passes.
func (o *operation) eventByLibrary() (data []byte, errs gqlerror.List) {
	_ = o.inPasses(func(ctx context.Context) {
		next, ctx := o.exec.DispatchOperation(context.WithoutCancel(ctx), o.reference())
		resp := next(ctx)
		if data, errs = resp.Data, resp.Errors; data != nil {
			belowRoot(errs)
		}
	})
	resolvers.SortErrors(errs)
	return data, errs
}

// event executes the only event of a subscription with package exec.
func (o *operation) event() (data []byte, errs gqlerror.List) {
	stream, failed := o.executable.Subscribe(o.ctx, o.variables)
	if stream == nil {
		return nil, o.presentAll(failed)
	}
	if !stream.Next(o.ctx) {
		o.t.Fatal("there is no event")
	}
	_ = o.inPasses(func(ctx context.Context) {
		var failed []exec.Error
		data, failed = stream.Execute(ctx, nil, nil)
		errs = o.presentAll(failed)
	})
	if stream.Next(o.ctx) {
		o.t.Error("there is another event")
	}
	return data, errs
}

// TestRandomEvents checks that gqlgen and package exec give the same responses to the events of random subscriptions.
func TestRandomEvents(t *testing.T) {
	compared, failed := 0, 0
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			u := &universe{seed: seed, absences: r.IntN(20), misses: r.IntN(20), failures: r.IntN(30), panics: r.IntN(5), hangs: r.IntN(5)}
			b := newExecutorPair(t, u)
			w := &writer{Rand: r, schema: b.schema, values: valuesOf(u)}
			kept := b.schema.Subscription.Fields[:0:0]
			for _, f := range b.schema.Subscription.Fields {
				if slices.Contains([]string{"priceChanged", "marketChanged", "ordersChanged", "balanceChanged", "streamStatusChanged"}, f.Name) {
					kept = append(kept, f)
				}
			}
			w.streams = kept
			for range 20 {
				document, variables := w.subscription()
				o, err := b.parse(document, variables)
				if err != nil {
					continue
				}
				compared++
				data, errs := o.event()
				want, wantErrs := o.eventByLibrary()
				if len(wantErrs) > 0 {
					failed++
				}
				if !bytes.Equal(data, want) || !slices.Equal(describeErrors(errs), describeErrors(wantErrs)) {
					t.Fatalf("seed %d: the document\n%s\nwith the variables %v gives\n%s\nwith the errors %q, want\n%s\nwith the errors %q", seed, document, o.variables, data, describeErrors(errs), want, describeErrors(wantErrs))
				}
			}
		})
	}
	t.Logf("%d events were compared, %d with errors", compared, failed)
	if compared < 400 || failed < compared/10 {
		t.Error("too few documents were valid or had errors")
	}
}
