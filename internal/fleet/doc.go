// Package fleet lets several replicas of the program act as one service. The replicas share public data and the venue's rate limit
// through Redis or Valkey.
//
// Redis may lose all data at any time, because the replicas can read the data from the venue again. If a client's request waits for
// a call to Redis, the call ends within Config.Timeout. After five failures in a row, a circuit breaker opens: calls fail at once
// until a probe succeeds. A replica without Redis works alone, with its own cache and an equal part of the venue's rate
// limit.
//
// The keys in Redis contain a hash of the venue's URL, so fleets of different venues can use the same Redis. Redis contains only
// public data and counts: no credentials and no user data.
//
// This is the only package that imports the Redis client.
package fleet
