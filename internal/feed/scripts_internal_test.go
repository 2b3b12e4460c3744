package feed

// internalScripts contains scripts whose messages have internal numbers. See messages.Internal.
var internalScripts = []script{
	{"a lost change without a number of the venue", "orderbook", `
		up
		snap -#1 .50x10 | .60x10
		delta -#2 b.50x20
		live 0 r0 .50x20 | .60x10
		delta -#4 b.49x5
		stale 0 r0 .50x20 | .60x10
		asked resync
		delta -#5 b.48x5
		stale 0 r0 .50x20 | .60x10
		snap -#6 .50x30 .48x5 | .60x10
		live 0 r1 .50x30 .48x5 | .60x10
		delta -#7 b.47x5
		live 0 r1 .50x30 .48x5 .47x5 | .60x10`},
	{"a snapshot after a lost change ends the gap", "orderbook", `
		up
		snap -#1 .50x10 | .60x10
		snap -#3 .50x20 | .60x10
		live 0 r1 .50x20 | .60x10`},
	{"a lost change before the snapshot", "orderbook", `
		up
		delta -@5#1 b.50x5
		delta -@7#3 b.50x7
		snap -@6#4 .50x6 | .60x10
		unknown
		asked resync
		snap -@8#5 .50x7 | .60x10
		live 0 r0 .50x7 | .60x10`},
	{"a lost change between the buffered changes and the snapshot", "orderbook", `
		up
		delta -@7#1 b.50x7
		snap -@6#3 .50x6 | .60x10
		unknown
		asked resync
		snap -@9#4 .50x9 | .60x10
		live 0 r0 .50x9 | .60x10`},
	{"the venue's numbers show that nothing is missing", "orderbook", `
		up
		snap A41#1 .50x10 | .60x10
		delta A42#3 b.50x20
		live A42 r0 .50x20 | .60x10
		delta A44#4 b.50x30
		asked resync
		snap A44#5 .50x30 | .60x10
		live A44 r1 .50x30 | .60x10`},
	{"a repeated change", "orderbook", `
		up
		snap -#1 .50x10 | .60x10
		delta -#2 b.50x20
		delta -#3 b.50x30
		delta -#2 b.50x20
		live 0 r0 .50x30 | .60x10`},
	{"another epoch without a new session is a gap", "orderbook", `
		up
		snap -#1 .50x10 | .60x10
		delta -#2.2 b.50x20
		stale 0 r0 .50x10 | .60x10
		asked resync
		snap -#2.3 .50x30 | .60x10
		live 0 r1 .50x30 | .60x10`},
	{"a new session begins new numbers", "orderbook", `
		up
		snap -#7 .50x10 | .60x10
		down
		up
		snap -#2.1 .50x20 | .60x10
		delta -#2.2 b.50x21
		live 0 r1 .50x21 | .60x10`},
	{"a lost price", "prices", `
		up
		price -#1 .50
		price -#3 .51
		live 0 r1 .51`},
	{"a lost trade", "trades", `
		up
		tape -#1 a
		trade -#2 b
		trade -#4 d
		stale 0 r0 a b
		asked resync
		tape -#5 a b c d
		live 0 r1 a b c d
		took b c d`},
	{"a lost change of a market", "market", `
		up
		ack
		read
		change -#1 STATUS
		read
		change -#3 STATUS
		read
		took STATUS STATUS`},
}
