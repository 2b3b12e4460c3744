// Package venue is the typed REST client of a prediction-market venue.
//
// It is tolerant of the forms that venues answer in and strict about their sense: what it cannot make sense of is an
// error that names the endpoint, never a zero, an empty list or a panic. Failures are *market.Error; their messages are
// fixed sentences, and no text of theirs, causes included, holds a URL or a credential.
//
// A venue that fails is treated with care. A call that failed in passing is made again while its caller's time allows. What
// still fails (a token, a market, a search, a branch of an account) is left alone until its backoff has ended, and told so
// meanwhile without a call. An endpoint at which many things fail is left alone as a whole by its circuit breaker, until a
// probe succeeds. Every HTTP call is admitted by the market.Permit of its context, which is told of the venue's limits.
// Nothing is hedged: a second call for the same thing would spend the budget that is short.
//
// Everything is bounded: the time of a call, the size of an answer as received and as inflated, its header, its values, the
// calls under way to one endpoint, connections, retries, pages and rows. Redirects are not followed.
//
// A bad element of an answer costs itself: one that was asked for by its id is an error of that id, a row of a list is left
// out of it and named in LeftOut. Positions, orders and books are used as a whole and so are whole or an error.
//
// The client keeps no answers. It remembers which keys and endpoints fail, and which list parameters the venue turned out
// not to know.
package venue
