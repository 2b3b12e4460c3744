package feed

var priceScripts = []script{
	{"a price replaces the previous price", "prices", `
		up
		price A7 .65 .64/.66
		live A7 r0 .65 .64/.66
		price A8 .66 .65/.67
		live A8 r0 .66 .65/.67`},
	{"repeated and late prices", "prices", `
		up
		price A7 .65
		price A7 .99
		price A6 .98
		live A7 r0 .65`},
	{"a price ends a gap", "prices", `
		up
		price A7 .65
		price A9 .67
		live A9 r1 .67`},
	{"a restart", "prices", `
		up
		price A700 .65
		price B1 .66
		live B1 r1 .66
		price A701 .99
		live B1 r1 .66
		down
		up
		price C1 .67
		live C1 r2 .67`},
	{"a price without the best prices", "prices", `
		up
		price A7 .65 .64/.66
		price A8 .66
		live A8 r0 .66
		price A9 .66 .65/.67
		live A9 r0 .66 .65/.67`},
	{"a quiet price is never subscribed anew", "prices", `
		up
		ack
		wait 1h
		asked
		unknown
		price A7 .65
		live A7 r0 .65
		down
		up
		wait 1h
		asked
		stale A7 r0 .65
		price A9 .66
		live A9 r1 .66`},
	{"a lost last price", "prices", `
		up
		price A7 .65
		beat A8
		asked resync
		stale A7 r0 .65
		wait 1h
		asked
		price A9 .66
		live A9 r1 .66`},
	{"prices without numbers", "prices", `
		up
		price - .65
		price - .66
		beat A3
		live 0 r0 .66`},
}

var tradeScripts = []script{
	{"trades follow a snapshot", "trades", `
		up
		tape A3 t1 t2
		live A3 r0 t1 t2
		took
		trade A4 t3
		took t3
		live A4 r0 t1 t2 t3
		trade A4 t3
		trade A3 t2
		took
		trade A5 t3
		took
		live A5 r0 t1 t2 t3`},
	{"a snapshot that begins with known trades", "trades", `
		up
		tape A3 t1 t2
		trade A6 t5
		asked resync
		stale A3 r0 t1 t2
		tape A6 t2 t3 t4 t5
		took t3 t4 t5
		live A6 r1 t1 t2 t3 t4 t5`},
	{"a gap is reported until it is taken", "trades", `
		up
		tape A1 t1
		down
		up
		tape A90 t80
		trade A91 t81
		took gap t80 t81
		live A91 r1 t1 t80 t81
		trade A92 t82
		took t82`},
	{"a snapshot in another order", "trades", `
		up
		tape A3 t1 t2 t3
		down
		up
		tape A5 t2 t4 t3 t5
		took t4 t5
		live A5 r1 t1 t2 t3 t4 t5`},
	{"an empty tape is known", "trades", `
		up
		tape A0
		down
		up
		tape A2 t1 t2
		took t1 t2
		live A2 r1 t1 t2`},
	{"an empty snapshot", "trades", `
		up
		tape A3 t1
		down
		up
		tape B0
		took
		trade B1 t2
		took t2`},
	{"trades that came before the snapshot", "trades", `
		up
		trade A3 t2
		trade A4 t3
		tape A3 t1 t2
		took t3
		live A4 r0 t1 t2 t3`},
	{"no trade is queued twice when a snapshot leaves a gap", "trades", `
		up
		tape A1 t1
		trade A3 t3
		asked resync
		trade A4 t4
		trade A6 t6
		tape A3 t1 t2 t3
		took
		asked resync
		tape A6 t3 t4 t5 t6
		took gap t3 t4 t5 t6`},
}

var marketScripts = []script{
	{"changes follow a confirmation", "market", `
		unknown
		up
		unknown
		ack
		read
		live 0 r0
		change A2 STATUS
		read
		took STATUS
		live A2 r0
		change A3 RESOLVED
		change A3 RESOLVED
		took RESOLVED
		live A3 r0
		wait 1h
		asked`},
	{"the first change confirms the subscription", "market", `
		up
		change A2 STATUS
		read
		took STATUS
		live A2 r0
		wait 1h
		asked`},
	{"a confirmation after the first change counts as a change", "market", `
		up
		change A2 STATUS
		read
		took STATUS
		live A2 r0
		ack
		read
		live A2 r1`},
	{"a subscription without a confirmation is repeated", "market", `
		up
		wait 1999ms
		asked
		wait 1ms
		asked watch
		unknown
		up
		wait 1999ms
		asked
		wait 1ms
		asked watch
		up
		ack
		read
		live 0 r0
		down
		wait 1h
		asked`},
	{"a gap counts as a change", "market", `
		up
		ack
		change A2 STATUS
		took STATUS
		read
		change A4 METADATA
		read
		took METADATA
		live A4 r1
		change A5 RESOLVED
		took RESOLVED
		live A5 r1`},
	{"a reconnect counts as a change", "market", `
		up
		ack
		read
		down
		unknown
		up
		unknown
		ack
		read
		live 0 r1
		change A9 STATUS
		took STATUS
		live A9 r1`},
	{"up twice", "market", `
		up
		change A9 STATUS
		took STATUS
		up
		read
		stale A0 r0
		ack
		live A0 r1
		read`},
	{"a restart restarts the numbers", "market", `
		up
		change A9 STATUS
		took STATUS
		down
		up
		change B1 METADATA
		took METADATA
		live B1 r1
		change B3 STATUS
		took STATUS
		live B3 r2`},
	{"a lost last change", "market", `
		up
		beat A3
		unknown
		ack
		read
		beat A4
		live A4 r0
		change A5 STATUS
		took STATUS
		read
		beat A5
		live A5 r0
		beat A6
		read
		live A6 r1
		change A7 RESOLVED
		took RESOLVED
		live A7 r1`},
}

var accountScripts = []script{
	{"closed orders and empty positions are removed", "user", `
		up
		acct A9 o1 o2=PARTIALLY_FILLED o3=FILLED | p1x5 p2x0 p3x-2 | 100
		live A9 r0 o1 o2 | p1x5 p3x-2 | 100
		order A10 o1 FILLED
		order A11 o4 OPEN
		live A11 r0 o2 o4 | p1x5 p3x-2 | 100
		order A12 o2 CANCELLED
		order A13 o9 EXPIRED
		order A14 o4 PARTIALLY_FILLED
		live A14 r0 o4 | p1x5 p3x-2 | 100
		pos A15 p1x0
		pos A16 p3x-3
		pos A17 p4x1
		pos A18 p9x0
		live A18 r0 o4 | p3x-3 p4x1 | 100
		bal A19 90
		live A19 r0 o4 | p3x-3 p4x1 | 90`},
	{"fills are queued", "user", `
		up
		acct A9 | | 1
		fill A10 t1
		fill A11 t2
		fill A11 t2
		took t1 t2
		live A11 r0 | | 1`},
	{"a snapshot after a reconnect replaces the account", "user", `
		up
		acct A9 o1 o2 | p1x5 p2x5 | 100
		down
		up
		acct A12 o2 | p2x5 | 90
		live A12 r1 o2 | p2x5 | 90`},
	{"unknown lists stay unknown", "user", `
		up
		acct A9 ? | ? | ?
		order A10 o1 OPEN
		pos A11 p1x1
		live A11 r0 ? | ? | ?
		bal A12 90
		live A12 r0 ? | ? | 90`},
}
