// Package spent records the public calls of the last minute in a file. So a new process knows how much of the venue's limit is left, even
// if the process before it was killed.
//
// The file has a fixed size below that of a memory page and is written in place by one system call. A process that is killed
// leaves the file as it was before a write or after it, and what was written survives the process. A loss of power may damage
// the file, which a checksum shows. Nothing is flushed to the disk: after a reboot the minute is usually over.
//
// A call is recorded before it is sent. One write records one percent of the limit ahead, so there are about a hundred writes a minute
// for any limit. Ended calls are counted by the second of their end, and the next write contains them. Running calls of a killed process
// count as if they had ended when the next process opened the file. So after a crash the file shows too many calls, never too few.
//
// A process that makes calls locks the file. The kernel releases the lock when the process ends. A process that starts beside another
// one, as in a rolling restart, does not wait: it uses a second file with a reserve of the limit, and changes to the first file when
// that is free. A third process makes no calls. So all processes with one directory stay within the limit together.
//
// A file that is missing, damaged, from the future or older than a minute does not show all calls. Then only the reserve may be used until
// every unknown call has left the minute. The file contains that time, so several quick restarts use the reserve once.
//
// The file holds numbers and times only. Calls with credentials are not recorded: they are counted by a hash under a random
// key that ends with the process. Keeping that key beside the hashes would let a thief of the file test guesses. Instead the
// window of each set of credentials has only its reserve at first, which is enough for one account.
package spent
