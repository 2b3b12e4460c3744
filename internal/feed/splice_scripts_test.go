package feed

// In these scripts, the venue sends changes of a book but no snapshot. The line "rest" is a book that a subscription has read over
// REST and offers to the topic.
var spliceScripts = []script{
	{"the book and the changes fit by their numbers", "orderbook", `
		up
		delta A42 b.50x42
		delta A43 b.49x43
		rest A42 .50x2 .47x2 | .60x2
		live A43 r0 .50x2 .49x43 .47x2 | .60x2
		from STREAM
		delta A44 b.47x0
		live A44 r0 .50x2 .49x43 | .60x2
		from STREAM
		wait 1h
		asked`},
	{"a quiet book is not joined, since nothing proves that no change is missing", "orderbook", `
		up
		rest A42 .50x2 | .60x2
		unknown
		delta A43 b.50x3
		unknown
		rest A42 .50x2 | .60x2
		live A43 r0 .50x3 | .60x2`},
	{"a book that is newer than the changes", "orderbook", `
		up
		delta A42 b.50x42
		rest A44 .50x9 | .60x2
		live A44 r0 .50x9 | .60x2
		from REST
		delta A43 b.50x43
		delta A44 b.50x44
		live A44 r0 .50x9 | .60x2
		delta A45 b.50x45
		live A45 r0 .50x45 | .60x2`},
	{"a hole between the book and the changes", "orderbook", `
		up
		delta A45 b.50x45
		rest A42 .50x2 | .60x2
		unknown
		rest A44 .50x4 .49x4 | .60x2
		live A45 r0 .50x45 .49x4 | .60x2`},
	{"a hole in the changes", "orderbook", `
		up
		delta A43 b.50x43
		delta A45 b.50x45
		rest A42 .50x2 | .60x2
		unknown
		rest A44 .50x4 .49x4 | .60x2
		live A45 r0 .50x45 .49x4 | .60x2`},
	{"a book of another epoch", "orderbook", `
		up
		delta B2 b.50x2
		rest A41 .50x1 | .60x2
		rest A1 .50x1 | .60x2
		unknown
		rest B1 .49x1 | .60x2
		live B2 r0 .50x2 .49x1 | .60x2`},
	{"a book without a number", "orderbook", `
		up
		delta A42@10 b.50x42
		rest -@5 .50x2 | .60x2
		rest -@99 .50x2 | .60x2
		unknown
		snap A42 .50x42 | .60x2
		live A42 r0 .50x42 | .60x2`},
	{"changes without numbers", "orderbook", `
		up
		delta -@10 b.50x42
		rest A42@5 .50x2 | .60x2
		rest -@5 .50x2 | .60x2
		unknown`},
	{"a book without an epoch does not fit changes with one", "orderbook", `
		up
		delta A42 b.50x42
		rest 41 .50x2 | .60x2
		unknown
		down
		up
		delta 42 b.50x42
		rest 41 .50x2 | .60x2
		live 42 r0 .50x42 | .60x2`},
	{"a gap without a snapshot", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		rest A40 .50x1 | .60x1
		rest A41 .50x10 | .60x10
		stale A41 r0 .50x10 | .60x10
		rest A42 .50x20 .48x20 | .60x10
		live A43 r1 .50x30 .48x20 | .60x10`},
	{"a book of a live topic is not needed", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		rest A50 .50x1 | .60x1
		live A41 r0 .50x10 | .60x10
		down
		rest A50 .50x1 | .60x1
		stale A41 r0 .50x10 | .60x10`},
	{"a crossed book", "orderbook", `
		up
		delta A42 b.49x1
		rest A41 .60x1 | .50x1
		unknown
		rest A41 .50x1 | .60x1
		live A42 r0 .50x1 .49x1 | .60x1`},
	{"changes that cross the book", "orderbook", `
		up
		delta A42 b.60x1
		rest A41 .50x1 | .60x1
		unknown
		rest A42 .60x1 | .70x1
		live A42 r0 .60x1 | .70x1`},
}

// eventScripts contains scripts of venues that send no snapshots, or none of trades and accounts.
var eventScripts = []script{
	{"trades are complete when the venue has confirmed them", "trades, no snapshots", `
		up
		unknown
		ack
		live 0 r0
		took
		trade A3 t1
		took t1
		live A3 r0 t1
		wait 1h
		asked`},
	{"the first trade confirms the subscription, and trades of the subscription before may be missing", "trades, no snapshots", `
		up
		trade A3 t1
		took t1
		live A3 r0 t1
		ack
		took gap
		live A3 r1 t1`},
	{"a subscription to trades is sent again until it is confirmed", "trades, no snapshots", `
		up
		wait 2s
		asked watch
		up
		wait 2s
		asked watch
		up
		ack
		live 0 r0
		wait 1h
		asked`},
	{"trades may be missing after a reconnect", "trades, no snapshots", `
		up
		ack
		trade A3 t1
		took t1
		down
		stale A3 r0 t1
		up
		ack
		took gap
		live A0 r1 t1
		trade B7 t2
		took t2
		live B7 r1 t1 t2`},
	{"a lost trade is a gap, and the topic stays live", "trades, no snapshots", `
		up
		ack
		trade A3 t1
		trade A5 t3
		took gap t1 t3
		live A5 r1 t1 t3
		beat A6
		took gap
		live A6 r2 t1 t3`},
	{"a venue that sends no tape although others do", "trades", `
		up
		trade A3 t1
		unknown
		ack
		unknown
		wait 2s
		took t1
		live A3 r0 t1
		trade A5 t3
		asked resync
		stale A3 r0 t1
		wait 2s
		took gap t3
		live A5 r1 t1 t3
		trade A6 t4
		took t4
		wait 1h
		asked`},
	{"a late tape", "trades", `
		up
		ack
		wait 2s
		live 0 r0
		trade A3 t3
		took t3
		tape A4 t2 t3 t4
		took t4
		live A4 r0 t3 t4`},
	{"a venue that neither confirms nor sends a tape", "trades", `
		up
		wait 2s
		asked watch
		up
		wait 2s
		asked watch
		unknown`},
	{"a book without a snapshot is subscribed anew by itself", "orderbook", `
		up
		ack
		delta A42 b.50x42
		wait 2s
		asked watch
		unknown
		up
		wait 2s
		asked watch
		up
		wait 2s
		asked watch
		up
		wait 4s
		asked watch
		up
		wait 8s
		asked watch
		unknown
		up
		snap A50 .50x1 | .60x1
		live A50 r0 .50x1 | .60x1
		wait 1h
		asked`},
	{"an account without a snapshot stays unknown", "user", `
		up
		ack
		order A9 o1 OPEN
		unread 1 0 0 0
		pos A10 p1x1
		bal A11 90
		fill A12 t1
		unread 1 1 1 1
		unknown
		took
		wait 2s
		asked resync
		unknown
		acct A11 o1 | p1x1 | 90
		took t1
		live A12 r0 o1 | p1x1 | 90
		order A13 o2 OPEN
		live A13 r0 o1 o2 | p1x1 | 90
		unread 1 1 1 1`},
	{"a venue without snapshots of accounts is not asked for one", "user, no snapshots", `
		up
		ack
		order - o1 OPEN
		unread 1 0 0 0
		wait 1h
		asked
		unknown`},
	{"a change of a list that the snapshot lacks", "user", `
		up
		acct A9 ? | ? | ?
		order A10 o1 OPEN
		pos A11 p1x1
		bal A12 90
		live A12 r0 ? | ? | 90
		unread 1 1 0 0`},
}
