// Package respcache keeps whole responses for as long as executing again would give the same bytes.
//
// A response holds what it rests on (reqctx.Snapshot): the handles of everything that was read for it. It is served while every
// handle stands, it is before the earliest instant until which one of them is fresh, and before the instant at which the
// clock alone changes what it says. Finding that out is an atomic load or two for each handle, and no look-up. So a hit is
// what an execution would give at that moment, and there is no time to live to be chosen.
//
// What an answer depends on, and what covers it:
//
//   - Values, absences, pages and what is computed of them: the handle of each entry, which tells of a replacement and of an
//     eviction, and the instant until which it is fresh. A value that was stale when it was read is past that instant, so what
//     shows it is never kept.
//   - The stream: handles of streamed entries tell of the end of their session and of a gap.
//   - Today's date, where a range of days has no end: Basis.Until.
//   - Who asks: looking at the credentials makes a response personal. It is found by those with the same Scope and nobody
//     else. What was made without a look is found by everybody, since an execution for anybody would read the same, find the
//     same, and not look either.
//   - What is asked: document, operation, variables and media type are in Key.
//   - Errors in what is asked, such as an invalid id: the request, which is in Key. Responses with any other error, and with rows
//     that were left out, are never kept. A read that failed, or has no entry, spoils the recorder, even where the response does
//     not show it.
//   - The state of the service itself (serviceStatus), which has no handle: the caller does not ask the cache for it.
//   - Configuration and schema do not change while the process lives.
//
// Equal requests at one time are executed once; see Cache.Do for who may share what.
package respcache
