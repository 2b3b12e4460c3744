//go:build !unix || race

package limits

import "time"

// timed is false where processor time can't be read, or the race detector makes some code ten times slower than other.
const timed = false

func processorTime() time.Duration { return 0 }
