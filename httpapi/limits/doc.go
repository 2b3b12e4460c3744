// Package limits refuses documents, variables and operations that would be expensive to validate or to execute.
//
// A document is measured after parsing and before validation. The reason is the library's validation: its time is quadratic in
// the repeats of a field, and exponential in fragments that spread the next fragment twice. For some fragment cycles, it never
// ends. The measurement counts each fragment wherever it is spread, and counts fields with the same response key together, as
// validation and execution do. It expands nothing, so its time is linear in the limits.
//
// A validated operation is compiled once to a Plan. The Plan computes the cost of the operation for any variables from one table
// of weights.
//
// Every refusal is a market.Error that names the limit, the value and a way to stay within the limit. Rule returns the name of
// the limit for metrics.
package limits
