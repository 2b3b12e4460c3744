package mutations

// venues has the mutations that remove what keeps several venues apart.
var venues = []mutation{
	{
		name: "the values of a driver get the name of the venue",
		file: "internal/market/qualified.go", oldText: "v.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))", newText: "",
		run: "^TestQualifyAllCopies$", message: "the driver's market is now",
	},
	{
		name: "the trades of two venues can have equal ids",
		file: "internal/market/qualified.go", oldText: "strings.HasSuffix(f.Name, \"ID\")", newText: "strings.HasSuffix(f.Name, \"ID\") && f.Name != \"TradeID\"", tests: "internal/cache",
		run: "^TestFurtherVenue$", message: "TradeID",
	},
	{
		name: "the name of a venue counts for the length of a URL",
		file: "internal/cache/coalescer.go", oldText: "bytes-keys*(len(name)+len(\"%3A\"))", newText: "bytes",
		run: "^TestFurtherVenue$", message: "computes the cost",
	},
	{
		name: "a slow venue delays the reads below the values of another venue",
		file: "loaders/fetch.go", oldText: "return s.arrived&^slow == 0", newText: "return slow != 0",
		run: "^TestArrivesAlone$",
	},
	{
		name: "a further venue gets the credentials of the client",
		file: "loaders/route.go", oldText: "return request.WithCredentials(ctx, nil)", newText: "return request.WithCredentials(ctx, request.CredentialsFrom(ctx))",
		run: "^TestRoute$", message: "gets the credentials of the client",
	},
	{
		name: "a public account of a further venue confirms the client's credentials",
		file: "loaders/loader.go", oldText: "case l.kind.User() && part == 0:", newText: "case l.kind.User():",
		run: "^TestRouteOfKeys$", message: "counts as an answer",
	},
	{
		name: "the REST client of a venue without credentials sends credentials", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", oldText: "if c.cfg.NoCredentials && call.Credentials != nil {", newText: "if false {",
		run: "^TestNoCredentials$",
	},
	{
		name: "the stream of a venue without credentials sends credentials",
		file: "internal/venue/stream/pool.go", oldText: "if c.cfg.NoCredentials && (t.Channel == messages.ChannelUser || creds != nil) {", newText: "if false {",
		run: "^TestNoCredentials$",
	},
	{
		name: "a hung venue takes the places of operations that wait for another one",
		file: "httpapi/admission/slot.go", oldText: "return s.await(ctx, at, 1)", newText: "return s.await(ctx, 1, 1)",
		run: "^TestVenueShare$",
	},
	{
		name: "an operation keeps its place at a venue that has answered",
		file: "httpapi/admission/slot.go", oldText: "at&(1<<s.part) != 0 {", newText: "s.part != nowhere {",
		run: "^TestVenueShare$",
	},
	{
		name: "a further venue refuses the credentials of the first one",
		file: "httpapi/identity.go", oldText: "&& err.Extensions[\"venue\"] == nil", newText: "",
		run: "^TestRefusalOfOtherVenue$",
	},
	{
		name: "the stream of a further venue gets the credentials of the client",
		file: "resolvers/live.go", oldText: "ctx, credentials = request.WithCredentials(ctx, nil), nil", newText: "ctx = request.WithCredentials(ctx, nil)",
		run: "^TestNoCredentialsForFurtherVenue$",
	},
	{
		name: "a venue that has failed is not asked again on the next page",
		file: "resolvers/turns.go", oldText: "case code == market.CodeUnsupported ||", newText: "case code != \"\" ||",
		run: "^TestInTurnAsksAgain$",
	},
	{
		name: "a flush finds the venue of no key", tests: "tests/e2e",
		file: "app/admin.go", oldText: "of = of[i : i+1]", newText: "of = of[:i/2+1]",
		run: "^TestEqualTokensOfTwoVenues$", message: "after the flush of b:",
	},
	{
		name: "a terminal executes control characters of a rules text",
		file: "app/pairs/print.go", oldText: "if r == '\\n' || unicode.IsPrint(r) {", newText: "if r == '\\n' || unicode.IsPrint(r) || r < ' ' {",
		run: "^TestText$", message: "the text is not whole",
	},
	{
		name: "--accept confirms a rules text that could not be read", tests: "tests/e2e",
		file: "app/questions_commands.go", oldText: "if problem := legs[l.Token].Problem; problem != \"\" {", newText: "if problem := \"\"; problem != \"\" {",
		run: "^TestQuestionsCheck$", message: "rules that could not be read were accepted",
	},
	{
		name: "questions check passes changed rules", tests: "tests/e2e",
		file: "app/questions_commands.go", oldText: "leg.Hash != l.RulesSHA256 {", newText: "l.RulesSHA256 == \"\" {",
		run: "^TestQuestionsCheck$", message: "new rules",
	},
	{
		name: "old market data are compared",
		file: "loaders/fresh.go", oldText: "case read.Stale && l.failed == nil && ", newText: "case false && ",
		run: "^TestGetFresh$",
	},
	{
		name: "a venue that fails is called for each change of a question",
		file: "internal/feed/follow/questions.go", oldText: "l.pause = lookBackoff.Wait(l.failures, 1)", newText: "l.pause = q.Every",
		run: "^TestQuestion$", message: "times and at the stale one",
	},
	{
		name: "a venue that hangs hides what is known of the others",
		file: "internal/feed/follow/questions.go", oldText: "state[i].Expire(now)", newText: "return next, nil",
		run: "^TestQuestionHangs$",
	},
	{
		name: "a cached comparison outlives the fresh time of its data", tests: "tests/e2e",
		file: "loaders/fresh.go", oldText: "l.dependencies.Until(time.Unix(0, until))", newText: "_ = time.Unix",
		run: "^TestQuestionReasons$",
	},
	{
		name: "a cached response outlives the questions that it shows", tests: "tests/e2e",
		file: "resolvers/questions.go", oldText: "old.handle.Invalidate()", newText: "_ = old.handle",
		run: "^TestQuestionsFile$", message: "was sent again",
	},
}
