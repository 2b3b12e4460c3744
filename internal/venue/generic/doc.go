// Package generic is the driver of venues with the REST API that docs/venues/generic.md describes. Comments in this package call
// this API the documented API.
//
// The client accepts every form in which venues are known to write a value. If it cannot read a response, it returns an error that
// names the endpoint. It never returns a zero or an empty list instead, and it never panics. The numbers of pages and rows of one
// read are bounded.
//
// A bad element of a response affects no other element. If the element was requested by id, that id gets an error. A bad row of a
// list is left out and reported in LeftOut. But a bad row of positions, orders or a book makes the whole read fail, because clients
// sum these rows.
//
// A Table says how the venue is asked: names of parameters, lists or single ids, paging. Client.Probe decides what the table leaves
// undecided. No read changes the table; an answer that contradicts it is an error or drift that names the setting.
package generic
