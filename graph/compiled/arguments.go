package compiled

// Strings returns a list of strings as a variable holds it, and false for any other value, which gqlgen may still coerce.
func Strings(v any) (list []string, ok bool) {
	if list, ok = v.([]string); ok {
		return list, true
	}
	values, ok := v.([]any)
	if !ok {
		return nil, false
	}
	list = make([]string, len(values))
	for i, v := range values {
		if list[i], ok = v.(string); !ok {
			return nil, false
		}
	}
	return list, true
}
