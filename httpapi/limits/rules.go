package limits

import (
	"errors"

	"oddsgraph/internal/market"
)

// The names of what a refusal is about, as Rule returns them.
const (
	RuleDocumentBytes = "document_bytes"
	RuleSyntax        = "syntax"
	RuleTokens        = "tokens"
	RuleNameBytes     = "name_bytes"
	RuleOperations    = "operations"
	RuleFragments     = "fragments"
	RuleFragmentCycle = "fragment_cycle"
	RuleSelections    = "selections"
	RuleDepth         = "depth"
	RuleRootFields    = "root_fields"
	RuleAliases       = "aliases"
	RuleRepeats       = "repeats"
	RuleDirectives    = "directives"
	RuleListItems     = "list_items"
	RuleVariableBytes = "variable_bytes"
	RuleCost          = "cost"
	// RuleCalls is about the upstream calls of an operation, which the loaders count while it is executed.
	RuleCalls = "calls"
)

// Rule returns which rule an error of this package is about, one of the constants, for use as a label of metrics. It is empty
// for any other error.
func Rule(err error) string {
	var r rule
	errors.As(err, &r)
	return string(r)
}

// rule is the cause of a refusal.
type rule string

// Error implements error.
func (r rule) Error() string { return "refused by the rule " + string(r) }

// refuse returns the error of a rule. Its text goes to the client.
func refuse(by rule, format string, args ...any) error {
	return market.Errorf(market.CodeBadUserInput, format, args...).Because(by)
}

// short returns a name as it is shown in errors: in full unless it is long.
func short(name string) string {
	const enough = 60
	if len(name) <= enough {
		return name
	}
	return name[:enough] + "…"
}
