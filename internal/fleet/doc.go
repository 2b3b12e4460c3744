// Package fleet makes several replicas of the program act as one service. They share state in Redis or Valkey.
//
// Everything in Redis may be lost at any time; the venue has the data. Every call to Redis ends within Config.Timeout. After
// five failures in a row, a circuit opens, and calls fail at once until a probe succeeds. A replica without Redis works alone,
// with its reserve of the venue's limit and its own cache.
//
// Keys begin with a hash of the venue's URL, so fleets of different venues can use the same Redis. Redis contains only public
// data and counts: no credentials and no user data.
//
// This is the only package that imports the Redis client.
package fleet
