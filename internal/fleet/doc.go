// Package fleet makes several replicas of the program act as one service. They share state in Redis or Valkey.
//
// Redis may lose all data at any time. The replicas can then read the data from the venue again. Every call to Redis ends within
// Config.Timeout. After five failures in a row, a circuit opens, and calls fail at once until a probe succeeds. A replica without
// Redis works alone. It uses its own cache and its reserve, which is the part of the venue's limit that the replica may use without
// Redis.
//
// Keys begin with a hash of the venue's URL, so fleets of different venues can use the same Redis. Redis contains only public
// data and counts: no credentials and no user data.
//
// This is the only package that imports the Redis client.
package fleet
