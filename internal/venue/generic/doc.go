// Package generic is the driver of venues with the documented REST API.
//
// The client accepts every form in which venues are known to write a value. If it cannot read a response, it returns an error
// that names the endpoint, never a zero, an empty list or a panic. Pages and rows are bounded.
//
// A bad element of a response affects no other element. If the element was requested by id, that id gets an error. A bad row of a
// list is left out and reported in LeftOut. Positions, orders and books are different: clients use them as a whole, so a bad row
// makes the read fail.
//
// The client remembers which parameters the venue does not accept.
package generic
