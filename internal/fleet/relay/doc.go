// Package relay lets several replicas share one subscription of the venue's stream for each public topic.
//
// Topics are divided into 64 shards. One replica owns a shard: it subscribes the topics that any replica wants, and sends the decoded
// messages to the others over a Bus. A lease says who the owner is. Its fence rises with each change of the owner, and messages with a
// lower fence than one that was seen are dropped, so an owner that was stopped cannot send old messages after it has continued.
//
// The Bus may lose messages. Each message has a fence and a number, and every 150 ms the owner sends the numbers of all topics that are
// up (a beat). So the feed detects each loss as a gap and requests a snapshot, which the owner makes from the state of its own feed.
//
// Without frames of an owner for 750 ms the topics of a shard are down. A replica that cannot reach the Bus for 10 s subscribes its
// topics itself. User topics always pass through to the replica's own client.
package relay
