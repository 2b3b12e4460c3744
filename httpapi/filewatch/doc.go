// Package filewatch reads the JSON files that operators give to the service: bounded, checked, and read again when they
// change.
//
// A file is looked at twice a second instead of being watched by the kernel: that sees a replacement by rename, a
// Kubernetes volume, whose files are symbolic links to a directory that is swapped, and a network file system alike.
package filewatch
