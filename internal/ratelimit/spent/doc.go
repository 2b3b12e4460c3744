// Package spent records the public calls of the last minute in a file. From the file, a new process computes how much of the
// venue's rate limit is left, even if the previous process was killed.
//
// The file has a fixed size, is smaller than a memory page, and is written in place by one system call. So even if a process is
// killed during a write, it has written the whole content or nothing. A loss of power may damage the file, but a checksum detects
// the damage. The file is not flushed to disk, because a reboot usually takes longer than a minute.
//
// A call is recorded before it is sent. One write records one percent of the limit in advance, so that about a hundred writes a
// minute are enough for any limit. The process counts the calls that end in each second, and the next write saves these counts. If
// a process is killed, its running calls count as if they had ended when the next process opened the file. So after a crash the
// file may contain too many calls, but never too few.
//
// A process locks the file. The kernel releases the lock when the process ends. During a rolling restart, the old process still has
// the lock when a new process starts. Then the new process locks a second file and uses only the margin of the limit: a few calls
// that a process normally does not use. When the first file is unlocked, the new process uses the first file. A third process makes
// no calls. So all processes with the same directory together stay within the limit.
//
// If the file is missing, damaged, from the future or older than a minute, calls may be unknown. Then the process uses only the
// margin until all unknown calls are older than a minute, or until the venue reports how many calls remain. The process writes the
// end of this wait to its file, so that quick restarts do not extend the wait.
//
// The file contains only numbers and times. Calls with credentials are not recorded. For such calls, the file would need a hash of
// the credentials. A thief of the file who also has the key of the hash could test guesses of the credentials. Instead, until
// Config.Cold has passed, the process uses only the margin of the limit for each set of credentials. A few calls are enough for one
// account.
package spent
