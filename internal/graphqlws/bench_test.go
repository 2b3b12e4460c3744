package graphqlws_test

const childEnv = "GRAPHQLWS_CHILD"

func runChild(string) int { return 1 }
