// Package fleet lets several replicas of the program act as one service. It keeps what they share in Redis or Valkey.
//
// Redis is never the truth: the venue is. Everything in Redis may be lost at any time, and every call to it ends within
// Config.Timeout. After five failures in a row a circuit opens, and calls fail at once until a probe succeeds. A replica
// without Redis works on its own, with its reserve of the venue's limit and its own cache.
//
// Keys begin with a hash of the venue's URL, so fleets of different venues can use one Redis. Redis holds public data and
// counts only: no credentials, no data of users.
//
// This is the only package that imports the Redis client.
package fleet
