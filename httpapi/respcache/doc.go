// Package respcache stores whole responses as long as another execution of the request would return the same bytes.
//
// A response has dependencies: the market.Handle of each value that was read for it. The response is served while every handle
// is valid and none has expired. A response that depends on the present date also has a deadline. A check needs an atomic load
// or two for each handle and no look-up. So a hit is equal to what an execution would return at that moment, and there is no
// time to live to configure.
//
// These are the things that a response may depend on, and how the cache notices a change of each:
//
//   - Values, absent values, pages, and everything computed from them: the handle of each cache entry reports that the entry
//     was replaced, was evicted or has expired. A value that was stale when it was read has expired, so its response is not
//     stored.
//   - The stream: handles of streamed entries report the end of their session and gaps.
//   - Today's date, if a range of days has no end: a deadline in the recorder.
//   - The caller: an execution that reads the credentials makes a response personal. Only callers with the same Identity find
//     it. If the execution has not read the credentials, the response is for everybody, because any other caller's execution
//     would read the same values.
//   - The request: document, operation, variables and media type are in Key.
//   - Errors in the request, such as an invalid id: the request is in Key. Responses with other errors or with omitted rows are
//     not stored. If a read failed, or the value that it returned has no cache entry, the response is not stored, even if the
//     response does not contain the value.
//   - The state of the service itself (serviceStatus) has no handle: package httpapi does not cache such responses.
//   - Configuration and schema do not change while the process runs.
//
// Equal concurrent requests are executed once; Cache.Do says which callers may share a response.
package respcache
