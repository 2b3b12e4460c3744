// Package auth identifies clients: it maps bearer tokens to accounts at the venue, finds a client's address behind
// proxies, and counts refused credentials by address.
package auth
