// Package filewatch reads the JSON files of operators. It bounds their size, validates them, and reads them again when they
// change.
//
// It polls a file twice a second instead of using the kernel's notifications. Polling works for a file that is replaced by
// rename, for a Kubernetes volume, whose files are symbolic links into a directory that is swapped, and for a network file
// system.
package filewatch
