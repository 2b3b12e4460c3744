package graph

// SDL returns the text of schema.graphqls.
func SDL() string { return sources[0].Input }
