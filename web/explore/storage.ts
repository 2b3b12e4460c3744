// The storage of GraphiQL. GraphiQL's history would store the headers of every request, which may contain credentials. This storage
// omits every member with the name headers, so credentials stay in memory.
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

/** Returns a JSON text without the members that are named headers, and any other text unchanged. */
export function withoutHeaders(text: string): string {
  if (!text.includes('"headers"')) return text
  try {
    return JSON.stringify(JSON.parse(text), (key, value) => (key === 'headers' ? undefined : value))
  } catch {
    return text // not JSON: the text of a query
  }
}
