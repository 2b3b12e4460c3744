// A reporter for node --test: a line of JSON for each test that has ended, with its time and, if it failed, its error.
export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const error = data.details.error?.cause ?? data.details.error
    yield JSON.stringify({ name: data.name, ms: Math.round(data.details.duration_ms), error: error && describe(error) }) + '\n'
  }
}

/** An error with the line of the check that it comes from. */
function describe(error) {
  const where = /(src|tests)\/[^/]+\.ts:\d+/.exec(error.stack)?.[0] ?? ''
  const cause = error.cause ? `: ${error.cause.code ?? ''} ${error.cause.message ?? error.cause}` : ''
  return `${where} ${error.message ?? error}${cause}`.trim()
}
