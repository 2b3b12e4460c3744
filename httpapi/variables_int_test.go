package httpapi

import "testing"

// TestIntVariablesHave32Bits checks that variables of type Int have 32 bits, also in lists.
func TestIntVariablesHave32Bits(t *testing.T) {
	for raw, good := range map[string]bool{
		`{"a":2147483647}`: true, `{"a":-2147483648}`: true, `{"a":2147483648}`: false, `{"a":-2147483649}`: false, `{"a":1e10}`: false,
		`{"b":[1,2147483648]}`: false, `{"b":2147483648}`: false, `{"b":[1,2147483647]}`: true,
	} {
		op := simpleOperation(t, "$a: Int, $b: [Int]")
		if _, err := variables(simpleSchema, op, raw); (err == nil) != good {
			t.Errorf("%s: got the error %v, want the variables accepted: %v", raw, err, good)
		}
	}
}
