// The small page: a query is posted and its answer shown; a subscription is posted too, and its events come as they happen.

const element = id => document.getElementById(id)
const [form, query, variables, credentials] = ['form', 'query', 'variables', 'credentials'].map(element)
const [stop, follow, state, answer] = ['stop', 'follow', 'state', 'answer'].map(element)

/** How many events are shown, the newest first. */
const shown = 20

query.value = `query Markets($text: String!) {
  searchMarkets(query: $text, sort: VOLUME_24H, first: 5) {
    nodes {
      question
      tokens {
        tokenId
        outcome
        price {
          price
          freshness { source stale }
        }
      }
    }
  }
}`
variables.value = '{"text": ""}'

const subscription = `subscription Prices($tokenIds: [String!]!) {
  priceChanged(tokenIds: $tokenIds) {
    reason
    token {
      outcome
      market { question }
    }
    price { price }
    previousPrice
  }
}`

/** What ends the operation under way. */
let under = new AbortController()

form.addEventListener('submit', event => {
  event.preventDefault()
  under.abort()
  under = new AbortController()
  run(under.signal)
})
form.addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
})
stop.addEventListener('click', () => under.abort())
follow.addEventListener('click', () => {
  variables.value = JSON.stringify({ tokenIds: tokensIn(answer.textContent) })
  query.value = subscription
  form.requestSubmit()
})

/** Runs what is in the form until it has ended or is stopped. */
async function run(signal) {
  answer.textContent = ''
  follow.disabled = true
  try {
    const body = JSON.stringify({ query: query.value, variables: variables.value.trim() ? JSON.parse(variables.value) : {} })
    const live = /^\s*subscription\b/m.test(query.value.replace(/#.*/g, ''))
    state.textContent = live ? 'Connecting…' : 'Asking…'
    stop.disabled = false
    const headers = { 'Content-Type': 'application/json', Accept: live ? 'text/event-stream' : 'application/json' }
    if (credentials.value) headers['X-Venue-Credentials'] = credentials.value
    const response = await fetch('graphql', { method: 'POST', body, headers, signal })
    if (response.headers.get('Content-Type')?.startsWith('text/event-stream')) await showEvents(response.body)
    else await showAnswer(response)
  } catch (error) {
    if (signal.aborted && signal !== under.signal) return // another operation has begun
    state.textContent = signal.aborted ? 'Stopped.' : String(error)
  }
  stop.disabled = true
}

/** Shows the answer to a query. */
async function showAnswer(response) {
  const text = await response.text()
  try {
    answer.textContent = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    answer.textContent = text
  }
  state.textContent = response.ok ? 'Answered.' : `Refused with status ${response.status}.`
  follow.disabled = tokensIn(text).length === 0
}

/** Shows the events of a stream in the form of https://html.spec.whatwg.org/multipage/server-sent-events.html. */
async function showEvents(stream) {
  const events = []
  let rest = ''
  let count = 0
  for await (const chunk of iterate(stream.pipeThrough(new TextDecoderStream()))) {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop()
    let complete = false
    for (const block of blocks) {
      const field = name => block.split('\n').filter(line => line.startsWith(`${name}:`)).map(line => line.slice(name.length + 1).trim()).join('\n')
      complete ||= field('event') === 'complete'
      if (field('event') !== 'next') continue // a comment that keeps the stream alive
      events.unshift(JSON.stringify(JSON.parse(field('data')), null, 2))
      events.length = Math.min(events.length, shown)
      state.textContent = `Live: ${++count} events.`
    }
    answer.textContent = events.join('\n')
    if (complete) {
      state.textContent = `Ended after ${count} events.`
      return
    }
  }
  state.textContent = `The stream was cut after ${count} events; run it again.`
}

/** The chunks of a stream; not every browser iterates over them by itself. */
async function* iterate(stream) {
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** The ids of tokens in an answer. */
function tokensIn(text) {
  return [...new Set([...text.matchAll(/"tokenId":\s*"([^"]+)"/g)].map(([, id]) => id))]
}
