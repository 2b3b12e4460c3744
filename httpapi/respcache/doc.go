// Package respcache stores whole responses for as long as executing the request again would give the same bytes.
//
// A response records its dependencies: the market.Handle of everything that was read for it. It is served while every handle
// is valid, until the earliest time at which one of them expires, and until the time at which the clock alone changes it.
// Checking this takes an atomic load or two for each handle and no lookup. So a hit is what an execution would give at that
// moment, and there is no time to live to choose.
//
// What a response depends on, and what covers the dependency:
//
//   - Values, absent values, pages, and what is computed from them: the handle of each cache entry, which reports replacement
//     and eviction, and the entry's expiry. A value that was stale when it was read has expired, so its response is not stored.
//   - The stream: handles of streamed entries report the end of their session and gaps.
//   - Today's date, if a range of days has no end: a deadline in the recorder.
//   - The caller: a look at the credentials makes a response personal. Callers with the same Identity find it, others do not.
//     A response made without such a look is for everybody, since any other execution would read the same and not look either.
//   - The request: document, operation, variables and media type are in Key.
//   - Errors in the request, such as an invalid id: the request is in Key. Responses with other errors, and with rows that
//     were left out, are not stored. A read that failed, or has no entry, spoils the recorder even if the response does not
//     show it.
//   - The state of the service itself (serviceStatus) has no handle: package httpapi does not cache such responses.
//   - Configuration and schema do not change while the process runs.
//
// Equal concurrent requests are executed once; Cache.Do says which callers may share a response.
package respcache
