// Package filewatch loads an operator's JSON file, and loads the file again after each change. The size of the file is limited.
//
// Package filewatch reads the file every second and compares its SHA-256. It does not use the kernel's notifications, because polling also works in
// these cases:
//
//   - A rename replaces the file.
//   - The file is in a Kubernetes volume. Such a file is a symbolic link into a directory that Kubernetes replaces.
//   - The file is on a network file system.
package filewatch
