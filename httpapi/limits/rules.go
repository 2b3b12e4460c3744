package limits

import (
	"errors"

	"oddsgraph/internal/market"
)

// These are the names of the rules that Rule returns.
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
	RuleRepeats       = "repeats"
	RuleListItems     = "list_items"
	RuleVariableBytes = "variable_bytes"
	RuleCost          = "cost"
	// RuleCalls limits the calls of an operation to the venue. The calls are counted during the execution.
	RuleCalls = "calls"
)

// Rules are the names of all rules.
var Rules = []string{
	RuleDocumentBytes, RuleSyntax, RuleTokens, RuleNameBytes, RuleOperations, RuleFragments, RuleFragmentCycle, RuleSelections, RuleDepth,
	RuleRepeats, RuleListItems, RuleVariableBytes, RuleCost, RuleCalls,
}

// Rule returns the name of the rule that caused an error of this package, as a label for metrics. It returns "" for other errors.
func Rule(err error) string {
	var r rule
	errors.As(err, &r)
	return string(r)
}

// rule is the name of a rule, as the cause of an error.
type rule string

func (r rule) Error() string { return "refused by the rule " + string(r) }

// refuse returns the error of a rule. The client sees the text of the error.
func refuse(by rule, format string, args ...any) error {
	return market.Errorf(market.CodeBadUserInput, format, args...).Because(by)
}

func short(name string) string {
	const enough = 60
	if len(name) <= enough {
		return name
	}
	return name[:enough] + "…"
}
