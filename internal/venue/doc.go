// Package venue is the typed REST client of a prediction-market venue.
//
// The client accepts every form in which venues are known to write a value. If it cannot read a response, it returns an error
// that names the endpoint, never a zero, an empty list or a panic. Failures are *market.Error with fixed messages. No message
// and no cause contains a URL or a credential.
//
// The client makes few calls to a failing venue. It retries a call with a transient failure while the caller has time. If a key
// (a token, a market, a search, a list of an account) still fails, the client refuses the key without a call until its backoff
// has ended. If many keys of an endpoint fail, the circuit breaker of the endpoint refuses all calls until a probe succeeds.
// The reqctx.Permit in the context of a call admits each HTTP call and receives the venue's rate-limit headers. The client does
// not hedge, because a second call would use the same rate limit.
//
// Everything is bounded: the duration of a call, the compressed and decompressed size of a response, the size of its header,
// the number of its values, the calls in flight to one endpoint, connections, retries, pages and rows. The client does not
// follow redirects.
//
// A bad element of a response affects no other element. If the element was requested by id, that id gets an error. A bad row of
// a list is left out and reported in LeftOut. Clients use positions, orders and books as a whole, so there a bad row makes the
// read fail.
//
// The client caches no responses. It remembers which keys and endpoints fail, and which parameters the venue does not accept.
package venue
