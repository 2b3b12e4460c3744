// Package rest calls the REST API of a venue for its driver.
//
// Failures are *market.Error with fixed messages. No message and no cause contains a URL or a credential.
//
// A client makes few calls to a failing venue. It retries a call with a transient failure a few times before the deadline of the
// read. If the retries fail, too, WithBackoff makes no call for the same key until the backoff of the key has ended. A key is a
// token, a market, a search or a list of an account. If many keys of an endpoint fail, the circuit breaker of the endpoint refuses
// all calls for some time. After this time, the circuit breaker admits one call as a probe. If the probe succeeds, the breaker
// admits all calls again. Before each HTTP call, the client asks the upstream.Permit in the context to admit the call. After the
// call, it passes the venue's rate-limit headers to the permit. The client does not repeat a slow call while the call is still in
// flight, because the rate limit would count both calls.
//
// The client bounds the duration of a call, the calls in flight to one endpoint, the connections and the retries. It also bounds
// the decompressed size of a response, the size of its header, and the number of values in it. The client does not follow
// redirects.
//
// The client caches no responses. It remembers which keys and endpoints fail.
package rest
