// Package jwt finds the accounts of JSON Web Tokens that an identity provider has signed. It checks the signature with
// the provider's published keys (JWKS), the issuer, the audience and the times, and maps one claim to an account of the service.
package jwt
