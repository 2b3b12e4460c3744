// Package venue is the typed REST client of a prediction-market venue.
//
// It is tolerant of the forms that venues answer in and strict about their sense: what it cannot make sense of is an
// error that names the endpoint, never a zero, an empty list or a panic. Failures are *market.Error; their messages are
// fixed sentences, and no text of theirs, causes included, holds a URL or a credential.
//
// The client makes no retries, keeps no answers and waits for no budget: that is done above it. What it does remember is
// which list parameters the venue turned out not to know.
package venue
