/**
 * Returns an object with the header X-Venue-Credentials. The object can also be the payload of connection_init. credentials is an
 * object, or a JSON text if the venue needs exactly this text. credentialsHeader accepts all characters; btoa accepts only Latin-1.
 */
export function credentialsHeader(credentials: object | string): { 'X-Venue-Credentials': string } {
  const text = typeof credentials === 'string' ? credentials : JSON.stringify(credentials)
  return { 'X-Venue-Credentials': btoa(String.fromCharCode(...new TextEncoder().encode(text))) }
}
