// Package limits refuses documents, variables and operations that would be expensive to validate or to execute.
//
// A document is measured after parsing and before validation. The library's validation is quadratic in the repeats of a field,
// exponential in fragments that spread each other twice, and endless for some fragment cycles. The measurement counts what
// validation and execution would visit: each fragment wherever it is spread, and fields with the same response key together. It
// only counts and expands nothing, so its time is linear in the limits. A validated operation is compiled once to a Plan, which
// computes the cost of the operation for any variables from one table of weights.
//
// Every refusal is a market.Error that names the limit, the value and a way to stay within the limit. Rule returns the name of
// the limit for metrics.
package limits
