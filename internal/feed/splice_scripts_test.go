package feed

// In these scripts, the venue does not send a snapshot in time. After 2 s without a snapshot, the feed requests one. After 4 s, the
// feed reads the state over REST.
var spliceScripts = []script{
	// In the following scripts, states have sequence numbers.
	{"the response and the changes are compared by number", "orderbook", `
		up
		delta A42 b.50x42
		delta A43 b.49x43
		wait 2s
		asked resync
		reading 0
		wait 2s
		reading 1
		delta A44 b.48x44
		unknown
		rest A42 .50x2 .47x2 | .60x2
		live A44 r0 .50x2 .49x43 .48x44 .47x2 | .60x2
		delta A45 b.47x0
		live A45 r0 .50x2 .49x43 .48x44 | .60x2
		from STREAM
		wait 1h
		asked
		reading 0`},
	{"the source is REST until the next change", "orderbook", `
		up
		wait 4s
		asked resync
		rest A42 .50x2 | .60x2
		live A42 r0 .50x2 | .60x2
		from REST
		delta A43 b.50x3
		live A43 r0 .50x3 | .60x2
		from STREAM`},
	{"a response that is newer than the buffered changes", "orderbook", `
		up
		delta A42 b.50x42
		wait 4s
		asked resync
		rest A44 .50x9 | .60x2
		live A44 r0 .50x9 | .60x2
		delta A43 b.50x43
		delta A44 b.50x44
		live A44 r0 .50x9 | .60x2
		delta A45 b.50x45
		live A45 r0 .50x45 | .60x2`},
	{"a response that the buffered changes do not follow", "orderbook", `
		up
		delta A45 b.50x45
		wait 4s
		asked resync
		rest A42 .50x2 | .60x2
		unknown
		reading 0
		wait 3s
		asked resync
		wait 1500ms
		reading 1
		rest A44 .50x4 .49x4 | .60x2
		live A45 r0 .50x45 .49x4 | .60x2`},
	{"a gap in the buffer", "orderbook", `
		up
		delta A43 b.50x43
		delta A45 b.50x45
		wait 4s
		asked resync
		rest A42 .50x2 | .60x2
		unknown
		wait 4s
		asked resync
		rest A44 .50x4 .49x4 | .60x2
		live A45 r0 .50x45 .49x4 | .60x2`},
	{"a response of another epoch", "orderbook", `
		up
		delta B2 b.50x2
		wait 4s
		asked resync
		rest A41 .50x1 | .60x2
		unknown
		wait 4s
		asked resync
		rest B1 .49x1 | .60x2
		live B2 r0 .50x2 .49x1 | .60x2`},
	{"a gap without a snapshot", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		wait 2s
		asked resync
		wait 2s
		reading 1
		rest A40 .50x1 | .60x1
		stale A41 r0 .50x10 | .60x10
		wait 4s
		asked resync
		rest A42 .50x20 .48x20 | .60x10
		live A43 r1 .50x30 .48x20 | .60x10`},
	{"a response older than the state", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		down
		up
		wait 4s
		asked resync
		rest A40 .50x1 | .60x1
		stale A41 r0 .50x10 | .60x10
		wait 4s
		asked resync
		rest A41 .50x10 | .60x10
		live A41 r1 .50x10 | .60x10`},
	{"a crossed response", "orderbook", `
		up
		wait 4s
		asked resync
		rest A41 .60x1 | .50x1
		unknown
		wait 4s
		asked resync
		rest A41 .50x1 | .60x1
		live A41 r0 .50x1 | .60x1`},
	{"buffered changes that cross the response", "orderbook", `
		up
		delta A42 b.60x1
		wait 4s
		asked resync
		rest A41 .50x1 | .60x1
		unknown
		wait 4s
		asked resync
		rest A42 .60x1 | .70x1
		live A42 r0 .60x1 | .70x1`},

	// In the following scripts, states have no sequence numbers, so the feed compares the states by the venue's times.
	{"the response and the changes are compared by time", "orderbook", `
		up
		delta -@10 b.50x10
		delta -@20 b.49x20
		delta -@30 b.48x30
		wait 4s
		asked resync
		rest -@20 .50x9 .49x9 .48x9 | .60x2
		live 0 r0 .50x9 .49x20 .48x30 | .60x2
		from STREAM
		delta -@40 b.50x40
		live 0 r0 .50x40 .49x20 .48x30 | .60x2`},
	{"a late change that the response contains", "orderbook", `
		up
		wait 4s
		asked resync
		rest -@20 .50x9 | .60x2
		delta -@19 b.50x19
		live 0 r0 .50x9 | .60x2
		delta -@20 b.50x20
		live 0 r0 .50x20 | .60x2
		wait 1m
		delta -@19 b.50x19
		live 0 r0 .50x19 | .60x2`},
	{"a late change of the previous epoch", "orderbook", `
		up
		wait 4s
		asked resync
		rest B5@20 .50x9 | .60x2
		delta A41@19 b.50x41
		live B5 r0 .50x9 | .60x2
		delta B6@21 b.50x6
		live B6 r0 .50x6 | .60x2`},
	{"a response with an earlier time than the state", "orderbook", `
		up
		snap -@20 .50x20 | .60x2
		down
		up
		wait 4s
		asked resync
		rest -@19 .50x19 | .60x2
		stale 0 r0 .50x20 | .60x2
		wait 4s
		asked resync
		rest -@20 .50x20 | .60x2
		live 0 r1 .50x20 | .60x2`},
	{"a wrong time has a bounded effect", "orderbook", `
		up
		snap -@99999 .50x20 | .60x2
		down
		wait 1m
		up
		wait 4s
		asked resync
		rest -@19 .50x19 | .60x2
		live 0 r1 .50x19 | .60x2`},
	{"without times, the response and the changes are compared by arrival", "orderbook", `
		up
		delta - b.50x1
		wait 4s
		asked resync
		reading 1
		delta - b.49x2
		rest - .50x9 .49x9 | .60x2
		live 0 r0 .50x9 .49x2 | .60x2
		delta - b.50x3
		live 0 r0 .50x3 .49x2 | .60x2`},
	{"numbered changes and a response without numbers", "orderbook", `
		up
		delta A42@10 b.50x42
		delta A43@20 b.49x43
		wait 4s
		asked resync
		rest -@15 .50x9 .49x9 | .60x2
		live A43 r0 .50x9 .49x43 | .60x2
		delta A45 b.50x45
		asked resync
		stale A43 r0 .50x9 .49x43 | .60x2
		snap A45 .50x45 | .60x2
		live A45 r1 .50x45 | .60x2`},
	{"numbered changes in the response continue its numbers", "orderbook", `
		up
		delta A42@10 b.50x42
		wait 4s
		asked resync
		rest -@15 .50x9 | .60x2
		live A42 r0 .50x9 | .60x2
		delta A43@14 b.50x43
		live A43 r0 .50x9 | .60x2
		delta A44@15 b.50x44
		live A44 r0 .50x44 | .60x2
		delta A46@16 b.50x46
		asked resync
		snap A46 .50x46 | .60x2
		live A46 r1 .50x46 | .60x2`},
	{"a response without an epoch does not end the stream's epoch", "orderbook", `
		up
		snap A41@1 .50x41 | .60x2
		delta A43@30 b.50x43
		asked resync
		wait 4s
		asked resync
		rest -@20 .50x20 | .60x2
		live A43 r1 .50x43 | .60x2
		delta A44@40 b.50x44
		live A44 r1 .50x44 | .60x2
		down
		up
		wait 4s
		asked resync
		rest -@50 .50x50 | .60x2
		live 0 r2 .50x50 | .60x2
		delta A46@60 b.50x60
		live A46 r2 .50x60 | .60x2`},

	// In the following scripts, reads return no usable state.
	{"a read that fails", "orderbook", `
		up
		delta A42 b.50x42
		wait 4s
		asked resync
		rest fails
		unknown
		reading 0
		wait 4s
		asked resync
		rest none
		wait 2s
		asked reconnect
		reading 0`},
	{"a read that takes too long is cancelled", "orderbook", `
		up
		wait 4s
		asked resync
		reading 1
		wait 14900ms
		reading 1
		asked
		wait 200ms
		reading 0
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"the snapshot arrives first", "orderbook", `
		up
		wait 4s
		asked resync
		reading 1
		snap A41 .50x10 | .60x10
		reading 0
		live A41 r0 .50x10 | .60x10`},
	{"the connection ends during the read", "orderbook", `
		up
		wait 4s
		asked resync
		reading 1
		down
		reading 0
		wait 1h
		up
		wait 2s
		reading 1
		rest A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"a venue that subscribes again after a resync", "orderbook", `
		up
		wait 2s
		asked resync
		up
		wait 2s
		reading 1
		rest A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},

	// The following scripts are about prices. Each message contains the complete state.
	{"a venue that sends no first price", "prices", `
		up
		wait 4s
		asked resync
		reading 1
		rest -@20 .65
		live 0 r0 .65
		from REST
		price A7@19 .19
		live 0 r0 .65
		price A8@20 .66 .65/.67
		live A8 r0 .66 .65/.67
		from STREAM
		wait 1h
		asked
		down
		up
		wait 4s
		asked resync
		rest -@99 .67
		live 0 r1 .67`},
	{"the stream's price arrives first", "prices", `
		up
		wait 4s
		asked resync
		reading 1
		price A7@19 .65
		reading 0
		live A7 r0 .65`},
	{"a price that cannot be read is retried and drops no connection", "prices", `
		up
		wait 4s
		asked resync
		rest fails
		wait 4s
		asked resync
		rest fails
		wait 8s
		rest fails
		asked
		wait 16s
		rest -@5 .65
		live 0 r0 .65`},

	// The following scripts are about trades, which Origin cannot read.
	{"a venue that sends no tape", "trades", `
		up
		trade A3 t1
		trade A4 t2
		unknown
		wait 4s
		asked resync
		took t1 t2
		live A4 r0 t1 t2
		trade A5 t3
		took t3
		trade A7 t5
		asked resync
		trade A8 t6
		trade A8 t6
		wait 4s
		asked resync
		took gap t5 t6
		live A8 r1 t1 t2 t3 t5 t6
		down
		up
		trade B1 t9
		wait 4s
		asked resync
		took gap t9
		live B1 r2 t1 t2 t3 t5 t6 t9
		wait 1h
		asked`},
	{"a trade is lost before the tape starts from the buffer", "trades", `
		up
		trade A3 t1
		trade A5 t3
		wait 4s
		asked resync
		took gap t1 t3
		live A5 r0 t1 t3`},
	{"trades without numbers and without a tape", "trades", `
		up
		trade - t1
		wait 4s
		asked resync
		took t1
		down
		up
		trade - t2
		wait 4s
		asked resync
		took gap t2
		live 0 r1 t1 t2`},
	{"a repeated trade is no gap", "trades", `
		up
		trade A3 t1
		trade A3 t1
		wait 4s
		asked resync
		took t1
		live A3 r0 t1`},
	{"a late tape", "trades", `
		up
		trade A3 t3
		wait 4s
		asked resync
		took t3
		tape A4 t2 t3 t4
		took t4
		live A4 r0 t3 t4`},

	// In the following scripts, Origin cannot read the topic, and no message arrives.
	{"a topic that gets no trades", "trades", `
		up
		wait 6s
		asked resync resync reconnect
		reading 0`},
	{"a topic that gets no account", "user", `
		up
		wait 6s
		asked resync resync reconnect
		reading 0`},
}
