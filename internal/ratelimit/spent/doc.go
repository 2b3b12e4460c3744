// Package spent records the public calls of the last minute in a file, so that a process which starts after another one, even
// after one that was killed, knows how much of the venue's limit is left.
//
// The file has a fixed size below that of a memory page and is written in place by one system call. A process that is killed
// leaves the file as it was before a write or after it, and what was written survives the process. A loss of power may damage
// the file, which a checksum shows. Nothing is flushed to the disk: after a reboot the minute is usually over.
//
// A call is noted before it is sent. Where the limit is high, one write notes several calls ahead, one percent of the limit, so
// there are about a hundred writes a minute whatever the limit is. Calls that have ended are counted by the second in which
// they did, and the next write carries them. Calls of a killed process that were under way count as if they had ended when the
// next process opened the file. So a crash makes the file say too much, never too little.
//
// A process that makes calls holds a lock on the file, which the kernel releases when the process ends in any way. A process that
// starts beside another one, as in a rolling restart, does not wait: it takes a second file, for the reserve that is left
// unused otherwise, and changes to the first when that is free. A third process makes no calls. So all processes on one
// directory stay within the limit together, without talking to each other.
//
// A file that is missing, damaged, from the future or older than a minute does not show what was spent. Then there is only the
// reserve until no call that it does not show can count any more. The file says itself until when that is, so restarts in
// quick succession have the reserve once.
//
// The file holds numbers and times only. Calls with credentials are not recorded: they are counted by a hash under a random
// key that ends with the process. Keeping that key beside the hashes would let a thief of the file test guesses. Instead the
// window of each set of credentials has only its reserve at first, which is enough for one account.
package spent
