// Package respcache stores whole responses as long as another execution of the request would return the same bytes, but for at
// most five seconds.
//
// A response has dependencies: the reads.Handle of each value that was read for it. The response is served while every handle is
// valid and usable. A response that depends on the present date is not served on later dates. This check needs some atomic loads for
// each handle and no look-up. If a value is stale, the use of the response begins its refresh, as an execution would. A hit is equal
// to the response that an execution would return at that moment, so nobody needs to set a time to live.
//
// These are the things that a response may depend on, and how the cache notices a change of each:
//
//   - Values, absent values, pages, and everything computed from them: the handle of each cache entry reports that the entry was
//     replaced by another value, was evicted, or is too old to be served. A response with a value that is too old, because the venue
//     fails or a call would have to wait, is served for at most a second.
//   - The times at which the values were read: only responses with the type Freshness contain them. Such a response is valid until
//     the first fresh value expires or any value is refreshed. With a stale value it is valid for at most a second, and may name an
//     older reason of the staleness.
//   - The stream of the venue: the handle of an entry that the stream updates reports when the stream session of the entry ends or
//     has a gap.
//   - Today's date, if a range of days has no end: request.Dependencies contains a deadline.
//   - The client: if an execution reads the credentials, its response is personal. Only clients with the same Identity get a
//     personal response. Any other response is for everybody, because an execution for another client would read the same values.
//   - The request: Key contains the document, the operation, the variables and the media type.
//   - Errors in the request, such as an invalid id: Key contains the request. A response with any other error or with omitted
//     rows is not stored. A response is also not stored if a read failed or returned a value without a cache entry.
//   - serviceStatus and recentPrices have no handles: package httpapi does not cache responses with these fields.
//   - Configuration and schema do not change while the process runs.
//
// Equal concurrent requests are executed once. Cache.Do says which callers may share a response.
package respcache
