package httpapi

import (
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/quota"
)

// maxErrorBytes bounds the total size of the errors of a response without data, in bytes; see boundErrors. So this response usually
// fits into quota.FreeBytes.
const maxErrorBytes = quota.FreeBytes - 1<<10

// boundErrors returns the first errors of a list whose total size is at most maxErrorBytes, but at least one error. If boundErrors
// omits errors, it adds an error that says how many.
func boundErrors(errs gqlerror.List) gqlerror.List {
	if len(errs) < 2 {
		return errs
	}
	size := 0
	for i, err := range errs {
		if size += len(appendJSON(nil, err)) + 1; size <= maxErrorBytes || i == 0 {
			continue
		}
		more := gqlerror.Errorf("there are %d more errors", len(errs)-i)
		more.Extensions = map[string]any{"code": codeOf(err)}
		return append(errs[:i:i], more)
	}
	return errs
}
