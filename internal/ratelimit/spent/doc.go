// Package spent records the public calls of the last minute in a file. A new process computes from the file how much of the venue's
// limit is left, even if the previous process was killed.
//
// The file has a fixed size, is smaller than a memory page, and is written in place by one system call. So a killed process has
// written all of a record or nothing, and the kernel keeps what was written. A loss of power may damage the file. A checksum
// detects such damage. The file is not flushed to disk, because after a reboot the minute is usually over.
//
// A call is recorded before it is sent. One write records one percent of the limit in advance, so any limit needs about a hundred
// writes a minute. The process counts the calls that ended in each second, and the next write saves these counts. Calls that were
// running when a process was killed count as if they had ended when the next process opened the file. So after a crash the file may
// contain too many calls, but never too few.
//
// A process that makes calls locks the file. The kernel releases the lock when the process ends. If another process has the
// lock, as in a rolling restart, a new process does not wait. It locks a second file and uses only the reserve, which is a few
// calls of the limit that a process does not use in normal operation; see package ratelimit. It changes to the first file when that
// file is free. A third process makes no calls. So all processes with the same directory stay within the limit together.
//
// A file that is missing, damaged, from the future or older than a minute may lack calls. With such a file, the process uses only
// the reserve until every unknown call is older than a minute. The process writes the time at which this wait ends to its file, so
// several quick restarts do not extend the wait.
//
// The file contains only numbers and times. Calls with credentials are not recorded, because a file with hashes of credentials
// and the key of the hash would let a thief test guesses. Instead, during the first minute after a start, the process makes only
// the few calls of the reserve with each set of credentials. That is enough for one account.
package spent
