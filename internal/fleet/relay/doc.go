// Package relay lets several replicas share one subscription of the venue's stream for each public topic.
//
// Topics are divided into 64 shards. Each shard has one owner: a replica that subscribes to the topics that any replica wants, and
// sends the decoded messages to the other replicas over a Bus. A lease names the owner. Each lease has a fence, a number that rises
// with each change of the owner. A replica drops messages whose fence is lower than the highest fence that it has seen. So an owner
// whose process was suspended cannot send old messages after it resumes.
//
// The Bus may lose messages. Each message has a fence and a number. Every 150 ms the owner sends a beat: the number of the last
// message of each topic that is up. So the feed detects each loss as a gap and requests a snapshot, which the owner makes from the
// state of its own feed.
//
// If a replica gets no frames from the owner of a shard for 750 ms, the topics of the shard are down on that replica. A replica
// that cannot reach the Bus for 10 s subscribes to its topics itself. Each replica always subscribes to user topics with its own
// client.
package relay
