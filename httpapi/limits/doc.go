// Package limits refuses documents, variables and operations that would be expensive to validate or to execute.
//
// A document is measured between parsing and validation: the library's validation is quadratic in the repeats of a field,
// exponential in fragments that spread each other twice, and does not return from some fragment cycles. What is measured
// is the document as validation and execution see it, with its fragments taken in and fields of one name merged, but it is
// counted and not built, so that measuring stays linear in the limits. An operation that was validated is compiled once to
// a Plan, which tells for any variables what executing it costs, by the weight of each field in one table.
//
// Every refusal is a market.Error that names the limit, the value and a way out; Rule names the limit for metrics.
package limits
