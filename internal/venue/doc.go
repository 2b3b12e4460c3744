// Package venue is the typed REST client of a prediction-market venue.
//
// The client accepts every form in which venues are known to write a value. A response that it cannot read is an error that
// names the endpoint, and never a zero, an empty list or a panic. Failures are *market.Error. Their messages are fixed
// sentences. No message and no cause contains a URL or a credential.
//
// A failing venue is spared. A call with a transient failure is retried while its caller has time. A key (a token, a market, a
// search, a list of an account) that still fails is refused without a call until its backoff has ended. If many keys of
// an endpoint fail, the circuit breaker of the endpoint refuses all its calls until a probe succeeds. The reqctx.Permit in the
// context of a call admits each HTTP call and learns what the venue says of its rate limit. The client does not hedge, because
// a second call would spend the same rate limit.
//
// Everything is bounded: the time of a call, the compressed and decompressed size of a response, its header, its number of
// values, the calls in flight to one endpoint, connections, retries, pages and rows. The client does not follow redirects.
//
// A bad element affects no others. If the element was requested by id, that id gets an error. A bad row of a list is left
// out and reported in LeftOut. Positions, orders and books are used as a whole, so one bad row makes the read fail.
//
// The client caches no responses. It remembers which keys and endpoints fail, and which parameters the venue does not accept.
package venue
