//go:build !linux

package main

import (
	"errors"
	"time"
)

func cpuTime(int) (time.Duration, error) {
	return 0, errors.New("bench reads the processor time of other processes, and can do so only on Linux")
}
