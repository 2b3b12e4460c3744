/**
 * Returns the header X-Venue-Credentials, which is also a member of connection_init's payload. Credentials are an object, or its
 * JSON text if the venue needs exactly that text. Unlike btoa alone it accepts every character.
 */
export function credentialsHeader(credentials: object | string): { 'X-Venue-Credentials': string } {
  const text = typeof credentials === 'string' ? credentials : JSON.stringify(credentials)
  return { 'X-Venue-Credentials': btoa(String.fromCharCode(...new TextEncoder().encode(text))) }
}
