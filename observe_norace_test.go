//go:build !race

package main

// observing is what metrics and log may allocate for an operation.
const observing = 8
