// The browser in which the pages are checked. It reaches only the server. A page fails its check if it tries to reach another host,
// or logs an error or a warning.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { after, before, type TestContext } from 'node:test'
import type axe from 'axe-core'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

/** Where GraphQL is served. */
export const endpoint = required('ODDSGRAPH_URL')

/** Where the demo venue is. A POST below its /__control/ changes its behaviour: see docs/ui-testing.md. */
export const venue = required('ODDSGRAPH_VENUE')

/** The viewports in which the pages are checked. */
export const desktop = { width: 1280, height: 800 }
export const phone = { width: 390, height: 844 }

/** How long a check waits for anything, in milliseconds. It is long, because the machine may be busy. */
const patience = 90_000

const origin = new URL(endpoint).origin
const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let browser: Browser

before(async () => {
  browser = await chromium.launch({
    executablePath: required('CHROMIUM'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  })
})

after(() => browser?.close())

/** An open page, and its violations so far. */
export interface Visit {
  page: Page
  /** The URLs of requests and WebSockets to hosts that visit does not allow. The requests were blocked. */
  outside: string[]
  /**
   * Errors and warnings on the console, uncaught exceptions, and violations of the page's policy. A test must remove the ones that
   * it expects.
   */
  problems: string[]
}

/**
 * Opens a path of the server, or of options.baseURL, in a new browser profile. If the URL in the parameter others is not empty, the
 * page may also send requests to its host. When the test ends, outside and problems must be empty.
 */
export async function visit(t: TestContext, path: string, options: BrowserContextOptions = {}, others = ''): Promise<Visit> {
  const home = options.baseURL ?? origin
  const hosts = [home, ...(others ? [others] : [])].map(url => new URL(url).host)
  const context = await browser.newContext({ baseURL: home, viewport: desktop, reducedMotion: 'reduce', ...options })
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  const outside: string[] = []
  const problems: string[] = []
  await context.route(
    url => !hosts.includes(url.host),
    route => {
      outside.push(route.request().url())
      return route.abort()
    },
  )
  page.on('websocket', socket => {
    if (!hosts.includes(new URL(socket.url()).host)) outside.push(socket.url())
  })
  page.on('console', message => {
    const late = message.text().includes('was preloaded using link preload but not used within') // a busy machine draws late
    if (['error', 'warning'].includes(message.type()) && !late) problems.push(`${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', error => problems.push(`${error.stack ?? error}`))
  await page.goto(path)
  t.after(async () => {
    await context.close()
    assert.deepEqual(outside, [], 'requests to other hosts')
    assert.deepEqual(problems, [], 'the console')
  })
  return { page, outside, problems }
}

/**
 * Adds an error to each event of a subscription that the page gets from now on, and sends an event without data before each of these
 * events. The service sends such events if it cannot read a value. addErrors reloads the page.
 */
export async function addErrors(page: Page) {
  const errors = [{ message: 'a price could not be read', extensions: { code: 'UPSTREAM_TIMEOUT' } }]
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      if (frame.type === 'next') {
        socket.send(JSON.stringify({ ...frame, payload: { data: null, errors } }))
        frame.payload.errors = errors
      }
      socket.send(JSON.stringify(frame))
    })
  })
  await page.reload()
}

/** Fails if axe reports a violation of any impact. */
export async function wantAccessible(page: Page) {
  // axe stays in the page until the page is loaded anew. Evaluating its source takes about as long as a check.
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axeSource)
  const found = await page.evaluate(async () => {
    // axe cannot make selectors of elements that the page has replaced while axe was running.
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ['violations'], selectors: false })
    return violations.map(({ id, impact, help, nodes }) => `${id} (${impact}): ${help}: ${nodes.map(node => `${node.html.slice(0, 200)} ${node.failureSummary}`).join('\n')}`)
  })
  assert.deepEqual(found, [], 'what axe finds')
}

/** Returns the fraction of the given seconds for which the page's main thread was busy, in CPU time. */
export async function mainThread(page: Page, seconds: number): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return { at: performance.now() / 1000, worked: metrics.find(({ name }) => name === 'TaskDuration')!.value }
  }
  const before = await read()
  await new Promise(resolve => setTimeout(resolve, 1000 * seconds))
  const after = await read()
  await session.detach()
  return (after.worked - before.worked) / (after.at - before.at)
}

/** Waits until the page has drawn n frames. */
export const frames = (page: Page, n: number) => page.evaluate(async n => {
  for (let i = 0; i < n; i++) await new Promise(requestAnimationFrame)
}, n)

/** Saves a screenshot of the visible part of the page in the directory SCREENSHOTS, if this variable is set. */
export async function screenshot(page: Page, name: string) {
  const directory = process.env.SCREENSHOTS
  if (directory) await page.screenshot({ path: `${directory}/${name}.png` })
}

/** Calls look until its result fits, and returns the result. It fails after the time patience. */
export async function eventually<T>(what: string, look: () => Promise<T>, fits: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + patience
  for (;;) {
    const value = await look()
    if (fits(value)) return value
    if (Date.now() > deadline) assert.fail(`${what}: in the end there is ${JSON.stringify(value)}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

/** Sends a query directly to the server and returns its data. The response must have no errors. */
export async function ask<T>(query: string, variables: object, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(endpoint, {
    method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ query, variables }),
  })
  const { data, errors } = (await response.json()) as { data: T; errors?: unknown }
  assert.equal(errors, undefined)
  return data
}

/** Asks the demo venue to do something, such as control('restart', { code: 4003 }) to drop its streams. */
export async function control(what: string, body: unknown) {
  await post(`${venue}/__control/${what}`, body)
}

/** Stops the server and its demo venue and starts them on the same ports. */
export async function restart() {
  await post(required('ODDSGRAPH_RESTART_URL'), {})
}

async function post(url: string, body: unknown) {
  const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  assert.ok(response.ok, `${url} answered ${response.status} ${await response.text()}`)
}

function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set: make pages runs these checks`)
  return value
}
