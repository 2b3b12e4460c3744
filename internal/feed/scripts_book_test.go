package feed

var bookScripts = []script{
	{"changes follow a snapshot", "orderbook", `
		unknown
		up
		unknown
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10
		delta A42 b.50x20 b.49x5 s.60x0 s.61x1
		live A42 r0 .50x20 .49x5 | .61x1
		delta A43<42 b.49x0
		live A43 r0 .50x20 | .61x1`},
	{"messages are ignored while the topic is down", "orderbook", `
		snap A41 .50x10 | .60x10
		unknown
		up
		snap A41 .50x10 | .60x10
		down
		stale A41 r0 .50x10 | .60x10
		delta A42 b.50x20
		snap A43 .50x30 | .60x10
		beat A50
		stale A41 r0 .50x10 | .60x10
		wait 1m
		stale A41 r0 .50x10 | .60x10`},
	{"duplicates", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.50x20
		delta A42 b.50x99
		delta A41 b.50x98
		snap A42 .50x97 | .60x10
		live A42 r0 .50x20 | .60x10`},
	{"gap", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		stale A41 r0 .50x10 | .60x10
		asked resync
		delta A44 b.49x5
		stale A41 r0 .50x10 | .60x10
		snap A43 .50x30 .48x1 | .60x10
		live A44 r1 .50x30 .49x5 .48x1 | .60x10`},
	{"the change that revealed the gap is applied to an older snapshot", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		snap A42 .50x10 .48x1 | .60x10
		live A43 r1 .50x30 .48x1 | .60x10`},
	{"a change with a wrong previous number", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42<40 b.50x30
		asked resync
		stale A41 r0 .50x10 | .60x10
		snap A42 .50x40 | .60x10
		live A42 r1 .50x40 | .60x10`},
	{"a snapshot with the known number ends a gap", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat A42
		asked resync
		snap A41 .50x10 | .60x10
		live A41 r1 .50x10 | .60x10`},
	{"a restart without a close", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta B1 b.50x30
		asked resync
		stale A41 r0 .50x10 | .60x10
		snap B1 .40x1 | .60x10
		live B1 r1 .40x1 | .60x10
		delta A42 b.50x99
		snap A43 .50x99 | .60x10
		beat A44
		live B1 r1 .40x1 | .60x10
		delta B2 b.40x2
		live B2 r1 .40x2 | .60x10`},
	{"a late snapshot of the previous epoch is not used", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta B2 b.50x30
		asked resync
		snap A42 .50x11 | .60x10
		stale A41 r0 .50x10 | .60x10
		asked resync
		snap B2 .50x30 | .60x10
		live B2 r1 .50x30 | .60x10`},
	{"a restart with a close restarts the numbers", "orderbook", `
		up
		snap A410 .50x10 | .60x10
		down
		up
		stale A410 r0 .50x10 | .60x10
		delta B4 b.40x7
		snap B3 .40x1 | .60x10
		live B4 r1 .40x7 | .60x10`},
	{"up twice without down", "orderbook", `
		up
		snap A41 .50x10 .45x3 | .60x10
		up
		stale A41 r0 .50x10 .45x3 | .60x10
		delta A42 b.50x11
		snap A41 .50x10 | .60x10
		live A42 r1 .50x11 | .60x10`},
	{"a new session drops the buffer", "orderbook", `
		up
		delta A50 b.50x50
		up
		snap B1 .50x10 | .60x10
		live B1 r0 .50x10 | .60x10`},
	{"an epoch may return in another session", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		snap B1 .50x20 | .60x10
		snap A42 .50x99 | .60x10
		live B1 r1 .50x20 | .60x10
		down
		up
		snap A43 .50x30 | .60x10
		live A43 r2 .50x30 | .60x10`},
	{"down twice", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		down
		down
		stale A41 r0 .50x10 | .60x10
		up
		snap A41 .50x10 | .60x10
		live A41 r1 .50x10 | .60x10`},
	{"down before the first snapshot", "orderbook", `
		up
		down
		unknown
		wait 1m
		up
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"an old snapshot in a gap", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.50x20
		delta A44 b.50x40
		asked resync
		snap A40 .50x1 | .60x10
		snap A41 .50x10 | .60x10
		stale A42 r0 .50x20 | .60x10
		snap A44 .50x40 | .60x10
		live A44 r1 .50x40 | .60x10`},
	{"after a reconnect an old snapshot of the same epoch leads to a resync", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		down
		up
		snap A40 .50x1 | .60x10
		stale A41 r0 .50x10 | .60x10
		wait 2s
		asked watch
		snap A40 .50x1 | .60x10
		live A40 r1 .50x1 | .60x10`},
	{"a venue without epochs restarts its numbers with each connection", "orderbook", `
		up
		snap 41 .50x10 | .60x10
		delta 42 b.50x11
		down
		up
		snap 1 .50x1 | .60x10
		live 1 r1 .50x1 | .60x10
		delta 2 b.50x2
		live 2 r1 .50x2 | .60x10`},
	{"a snapshot for a live topic", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		snap A42 .50x20 | .60x10
		live A42 r0 .50x20 | .60x10
		snap A45 .50x30 | .60x10
		live A45 r1 .50x30 | .60x10
		delta A46 b.50x31
		live A46 r1 .50x31 | .60x10`},
	{"buffered changes are applied to the snapshot", "orderbook", `
		up
		delta A40 b.50x1
		delta A42 b.50x20
		delta A43 b.49x3
		unknown
		snap A41 .50x10 | .60x10
		live A43 r0 .50x20 .49x3 | .60x10`},
	{"a gap in the buffered changes", "orderbook", `
		up
		delta A42 b.50x20
		delta A44 b.49x3
		delta A45 b.48x3
		snap A41 .50x10 | .60x10
		unknown
		asked resync
		snap A43 .50x20 .47x1 | .60x10
		live A45 r0 .50x20 .49x3 .48x3 .47x1 | .60x10`},
	{"a change that crosses the book", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.60x1
		stale A41 r0 .50x10 | .60x10
		asked resync
		snap A42 .60x1 | .70x10
		live A42 r1 .60x1 | .70x10`},
	{"a book that is crossed only between the changes of a message", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.60x1 s.60x0 s.61x2
		live A42 r0 .60x1 .50x10 | .61x2`},
	{"a crossed snapshot", "orderbook", `
		up
		snap A41 .60x10 | .50x10
		unknown
		asked resync
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"a buffered change crosses the snapshot", "orderbook", `
		up
		delta A42 b.60x1
		snap A41 .50x10 | .60x10
		unknown
		asked resync
		snap A42 .60x1 | .70x10
		live A42 r0 .60x1 | .70x10`},
	{"a book that stays crossed is requested less and less often", "orderbook", `
		up
		snap A41 .60x10 | .50x10
		snap A42 .60x10 | .50x10
		snap A43 .60x10 | .50x10
		asked resync resync resync
		snap A44 .60x10 | .50x10
		asked
		wait 4s
		asked watch
		up
		snap A45 .60x10 | .50x10
		wait 15s
		asked
		wait 1s
		asked watch
		unknown`},
	{"sides may be empty", "orderbook", `
		up
		snap A41 |
		live A41 r0 |
		delta A42 s.60x1
		live A42 r0 | .60x1
		delta A43 s.60x0 b.99x1
		live A43 r0 .99x1 |`},
	{"a heartbeat reveals the loss of the last change", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat A41
		live A41 r0 .50x10 | .60x10
		beat A42
		stale A41 r0 .50x10 | .60x10
		asked resync
		snap A42 .50x20 | .60x10
		live A42 r1 .50x20 | .60x10`},
	{"a heartbeat after a restart", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat B2
		asked resync
		stale A41 r0 .50x10 | .60x10
		snap B2 .50x20 | .60x10
		live B2 r1 .50x20 | .60x10`},
	{"a heartbeat without an epoch", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat 41
		live A41 r0 .50x10 | .60x10
		beat 42
		asked resync
		snap A42 .50x20 | .60x10
		live A42 r1 .50x20 | .60x10`},
	{"heartbeats do not disturb a resync", "orderbook", `
		up
		beat A41
		snap A41 .50x10 | .60x10
		delta A43 b.50x1
		asked resync
		beat A44
		beat B1
		snap A44 .50x20 | .60x10
		live A44 r1 .50x20 | .60x10`},
	{"without a snapshot after a gap, the book is subscribed anew", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		wait 1900ms
		asked
		wait 200ms
		asked watch
		wait 2s
		asked watch
		wait 2s
		asked watch
		wait 3s
		asked
		wait 1s
		asked watch
		down
		stale A41 r0 .50x10 | .60x10
		wait 1h
		asked
		up
		wait 2s
		asked watch
		snap A50 .50x40 | .60x10
		live A50 r1 .50x40 | .60x10`},
	{"a snapshot resets the count of attempts", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		wait 9s
		asked resync watch watch watch
		snap A43 .50x30 | .60x10
		delta A45 b.50x30
		wait 9s
		asked resync watch watch watch
		snap A45 .50x30 | .60x10
		live A45 r2 .50x30 | .60x10`},
	{"full books without numbers", "orderbook", `
		up
		snap - .50x10 | .60x10
		live 0 r0 .50x10 | .60x10
		snap - .50x20 | .60x10
		live 0 r0 .50x20 | .60x10
		beat 7
		live 0 r0 .50x20 | .60x10
		wait 1h
		asked
		down
		up
		snap - .50x20 | .60x10
		live 0 r1 .50x20 | .60x10`},
	{"full books without numbers that are crossed for a moment", "orderbook", `
		up
		snap - .50x10 | .60x10
		snap - .60x20 | .60x10
		stale 0 r0 .50x10 | .60x10
		asked resync
		snap - .60x20 | .61x10
		live 0 r1 .60x20 | .61x10`},
	{"changes without numbers", "orderbook", `
		up
		delta -@5 b.50x5
		delta -@9 b.49x9
		delta - b.48x9
		snap -@7 .50x10 | .60x10
		live 0 r0 .50x10 .49x9 | .60x10
		delta - b.50x11
		live 0 r0 .50x11 .49x9 | .60x10
		delta - b.70x1
		asked resync
		snap - .50x12 | .60x10
		live 0 r1 .50x12 | .60x10`},
}
