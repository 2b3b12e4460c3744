// Package relay lets several replicas share one subscription of the venue's stream for each public topic.
//
// Topics are divided into 64 shards. Each shard has at most one owner: the replica that has the lease of the shard. The owner
// subscribes to the topics of the shard that any replica wants. It sends the decoded messages to the other replicas over a Bus.
// Each lease has a fence: a number that rises with each new lease of the shard. A replica drops a message whose fence is lower than
// the highest fence that the replica has seen for the shard. So the old messages of a former owner whose process was suspended have
// no effect.
//
// The Bus may lose messages, so each message of a topic has a number. Every 150 ms the owner sends a beat: the last number of each
// topic whose subscription is up. So the feed of another replica detects each lost message as a gap and requests a snapshot. The
// owner takes the snapshot from the state of its own feed.
//
// If a replica receives nothing from the owner of a shard for 750 ms, it reports the topics of the shard as down. A replica that
// cannot reach the Bus for 10 s subscribes to all its topics itself. Each replica always subscribes to the topics of accounts
// itself.
package relay
