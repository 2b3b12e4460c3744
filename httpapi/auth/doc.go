// Package auth identifies clients. It maps bearer tokens to accounts at the venue. It finds a client's address behind proxies. It
// counts refused credentials by address.
package auth
