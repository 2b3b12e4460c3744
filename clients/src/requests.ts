// The HTTP requests that a client makes.

interface Request {
  method: string
  /** Whether the request contained the document. If false, it contained only the hash of the document. */
  document: boolean
  status: number
}

/** Returns a fetch that records its requests. */
export function recorder(ask = fetch) {
  const made: Request[] = []
  const record: typeof fetch = async (input, init) => {
    const response = await ask(input, init)
    const method = init?.method ?? 'GET'
    const query = method === 'GET' ? new URL(String(input)).searchParams.get('query') : JSON.parse(String(init?.body)).query
    made.push({ method, document: Boolean(query), status: response.status })
    return response
  }
  return { made, fetch: record }
}
