// Package filewatch loads an operator's JSON file, and loads the file again after each change. The size of the file is limited.
//
// It polls the file twice a second and does not use the kernel's notifications. Polling also works for files that are replaced
// by a rename, for Kubernetes volumes (whose files are symbolic links into a directory that is replaced), and for network file
// systems.
package filewatch
