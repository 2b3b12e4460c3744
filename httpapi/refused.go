package httpapi

import (
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/quota"
)

// maxErrorBytes bounds the errors of a response without data, in bytes; see bounded. Such a response usually fits into
// quota.FreeBytes.
const maxErrorBytes = quota.FreeBytes - 1<<10

// bounded returns the first errors of a list that fit into maxErrorBytes, but at least one. If it omits errors, it adds an error
// with the number of omitted errors.
func bounded(errs gqlerror.List) gqlerror.List {
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
