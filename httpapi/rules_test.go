package httpapi

import (
	"strings"
	"testing"
)

// TestRootOfSubscriptions checks that a subscription selects one field at its root, without a condition, also through fragments.
func TestRootOfSubscriptions(t *testing.T) {
	validate := Validator(testConfig(t))
	for document, want := range map[string]string{
		`subscription { streamStatusChanged { state } }`:                              "",
		`subscription ($a: Boolean!) { streamStatusChanged { state @skip(if: $a) } }`: "",
		`subscription ($a: Boolean!) { ...F } fragment F on Subscription { streamStatusChanged { ...G @include(if: $a) } } fragment G on StreamStatus { state }`: "",
		`query ($a: Boolean!) { serviceStatus @skip(if: $a) { demo } }`:                                                                                          "",
		`subscription ($a: Boolean!) { streamStatusChanged @skip(if: $a) { state } }`:                                                                            "The root of a subscription must not have @skip.",
		`subscription { streamStatusChanged @include(if: true) { state } }`:                                                                                      "The root of a subscription must not have @include.",
		`subscription ($a: Boolean!) { ... @include(if: $a) { streamStatusChanged { state } } }`:                                                                 "The root of a subscription must not have @include.",
		`subscription ($a: Boolean!) { ...F @skip(if: $a) } fragment F on Subscription { streamStatusChanged { state } }`:                                        "The root of a subscription must not have @skip.",
		`subscription ($a: Boolean!) { ...F } fragment F on Subscription { ... { streamStatusChanged @skip(if: $a) { state } } }`:                                "The root of a subscription must not have @skip.",
		`query { serviceStatus { demo } } subscription ($a: Boolean!) { streamStatusChanged @skip(if: $a) { state } }`:                                           "The root of a subscription must not have @skip.",
		`subscription { a: streamStatusChanged { state } b: streamStatusChanged { state } }`:                                                                     "A subscription selects one field at its root, but this one selects both a and b.",
		`subscription { a: streamStatusChanged { state } ... { a: streamStatusChanged { since } } }`:                                                             "",
	} {
		switch _, err := validate(document); {
		case want == "" && err != nil:
			t.Errorf("%s: got the error %v", document, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got the error %v, want %q", document, err, want)
		}
	}
}
