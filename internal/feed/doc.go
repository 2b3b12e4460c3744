// Package feed maintains the live state of each watched topic of the venue's stream: a snapshot with all later changes applied.
//
// # Topics and watches
//
// A watch is a reference to a topic. The feed subscribes to a topic for its first watch, and unsubscribes when the topic has had no
// watches for Config.Linger. The feed checks the sequence numbers of a topic's messages. After a gap in these numbers, the topic is
// stale until a new snapshot arrives. Until then, the feed publishes no new values of the topic. There are two exceptions. A topic
// that has only events, such as a market, stays live and reports the gap. A price topic stays live if the next price shows the gap,
// because each price is a complete state.
//
// # Topics without a snapshot
//
// A venue may send nothing about a quiet topic for hours, so silence of a topic is no fault of its connection. Config.Snapshots
// lists the channels that begin with a snapshot, besides books. A topic that has only events is live when the venue has confirmed its
// subscription. A price is live from its first message. An account without a snapshot stays unknown, and the feed only reports which
// of its lists have changed. If a snapshot or a confirmation does not arrive, the feed sends the subscription of this topic again.
// Readers read a topic that is not live over REST. [Watch.Join] makes a book live that was read over REST, if the numbers of the
// stream's changes continue those of the book.
//
// A slow reader never slows the feed down. A new price, book or account replaces the old one, and the feed signals the reader. A
// slow reader therefore misses some states, but always gets the latest state. Trades and market changes are queued. If the queue of
// a watch is full, the watch ends with an error. Readers compute differences between two states themselves, for example the changed
// levels of a book.
//
// The feed passes each live state to Config.Sink, so that queries return the same values as subscriptions.
//
// # Limits of public topics
//
// A caller is the verified identity of a client, or else the client's IP address (see request.Request). The venue limits the
// number of topics of each connection. Config.Topics is the number of topics that all connections together allow. Callers share
// these topics as follows:
//
//   - Each caller may always watch a quarter of Config.Topics. This number is the caller's share. If several callers watch a topic,
//     the topic counts for only one of these callers.
//   - A caller may watch more prices and books than its share while other callers do not need the topics. When other callers need
//     the topics, the feed ends such watches with an error. The clients can then poll the prices and books instead.
//   - A caller may watch more trades and markets than its share only while all callers watch less than half of Config.Topics of
//     them. It gives up its own prices and books for them. The feed does not end these watches for other callers, because polling
//     does not replace trades and market changes.
//   - The feed also watches prices and books that queries read often. These watches are called auto-watches. Their number is at
//     most half of Config.Topics. At this limit, a new auto-watch replaces the one that queries have not read for the longest time,
//     but none that they have read within ten seconds. The feed closes an auto-watch that queries no longer read. Auto-watches give
//     way to subscriptions, and never take a topic from one.
//
// The topics of accounts do not count towards Config.Topics.
package feed
