// Package filewatch loads the JSON files of operators, with a size limit, and loads them again when they change.
//
// It polls a file twice a second instead of using the kernel's notifications. Polling works alike for replacement by rename,
// for Kubernetes volumes, whose files are symbolic links into a directory that is swapped, and for network file systems.
package filewatch
