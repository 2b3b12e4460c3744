// Package jwt finds the accounts of JSON Web Tokens that an identity provider has signed. It checks the signature of a token with
// the provider's published keys (JWKS). It also checks the issuer, the audience and the times. One claim of the token identifies
// the account.
package jwt
