//go:build race

package main

// observing is what metrics and log may allocate for an operation. Under the race detector pools lose what they are given.
const observing = 16
