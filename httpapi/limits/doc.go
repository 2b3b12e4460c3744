// Package limits refuses documents, variables and operations that would be expensive to validate or to execute.
//
// A document is measured after parsing and before validation. The reason is the validation of gqlparser: its time is quadratic in
// the repeats of a field, and exponential in the number of fragments if each spreads the next one twice. For some fragment cycles,
// validation never ends. The measurement counts each fragment wherever it is spread, and counts fields with the same response key
// together, as validation and execution do. It stops as soon as a limit is exceeded, so its time is linear in the limits.
//
// A validated operation is compiled once to a Plan. The Plan computes the cost of the operation for any variables from one table
// of weights.
//
// Every refusal is a market.Error or wraps one. The text names the limit or the mistake in the syntax. Rule returns the name of
// the limit for metrics.
package limits
