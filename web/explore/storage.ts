// Where GraphiQL keeps what it remembers. Its history would keep the headers of every request, and with them credentials,
// which stay in memory here: nothing that is called headers gets to the disk.
import type { Storage } from '@graphiql/toolkit'

const prefix = 'graphiql:'

const ours = () => Object.keys(localStorage).filter(key => key.startsWith(prefix))

export const storage: Storage = {
  getItem: key => localStorage.getItem(key),
  setItem(key, value) {
    if (key !== `${prefix}headers`) localStorage.setItem(key, withoutHeaders(value))
  },
  removeItem: key => localStorage.removeItem(key),
  clear: () => ours().forEach(key => localStorage.removeItem(key)),
  get length() {
    return ours().length
  },
}

/** A JSON text without the members that are called headers; any other text as it is. */
export function withoutHeaders(text: string): string {
  if (!text.includes('"headers"')) return text
  try {
    return JSON.stringify(JSON.parse(text), (key, value) => (key === 'headers' ? undefined : value))
  } catch {
    return text // a query that somebody has typed
  }
}
