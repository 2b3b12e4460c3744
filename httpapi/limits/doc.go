// Package limits refuses documents, variables and operations that would be expensive to validate or to execute.
//
// A document is measured between parsing and validation, because validation with the library is quadratic in the repeats
// of a field, exponential in fragments that spread each other twice, and endless for some fragment cycles. The
// measurement sees the document as validation and execution do: with fragments taken in and fields of one name merged.
// It counts these and does not build them, so measuring is linear in the limits. A validated operation is compiled once
// to a Plan, which calculates the operation's cost for any variables from one table of weights.
//
// Every refusal is a market.Error that names the limit, the value and a way out. Rule names the limit for metrics.
package limits
