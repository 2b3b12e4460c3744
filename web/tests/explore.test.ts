import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test, type TestContext } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { control, desktop, eventually, frames, phone, screenshot, visit, wantAccessible } from './browser'

/** The text of one of GraphiQL's editors. */
const textOf = (page: Page, editor: string) =>
  page.locator(`${editor} .CodeMirror`).first().evaluate(element => (element as unknown as { CodeMirror: { getValue(): string } }).CodeMirror.getValue())

const response = (page: Page) => textOf(page, '.graphiql-response')
const query = (page: Page) => textOf(page, '.graphiql-query-editor')

const execute = (page: Page) => page.getByRole('button', { name: /execute query/i }).click()

/** GraphiQL with the response to its first example. */
async function visitGraphiQL(t: TestContext, options?: BrowserContextOptions) {
  const { page } = await visit(t, '/', options)
  await ready(page)
  await answered(page)
  return page
}

const answered = (page: Page) => eventually('an answer', () => response(page), text => text.endsWith('}'))

const ready = (page: Page) => eventually('GraphiQL', () => page.locator('.graphiql-query-editor .CodeMirror-line').count(), lines => lines > 1)

/** Opens a tab and waits until the editor shows its query. */
async function open(page: Page, tab: string) {
  await page.getByRole('list', { name: 'Select active operation' }).getByRole('button', { name: tab, exact: true }).click()
  await eventually('the query', () => query(page), text => text.includes(` ${tab}(`))
}

/** Runs the document in the tab and returns the response. */
async function answer(page: Page) {
  await execute(page)
  return JSON.parse(await answered(page))
}

/** Opens the editor for headers and returns its text. */
async function headers(page: Page) {
  await page.getByRole('button', { name: 'Headers', exact: true }).click()
  return textOf(page, '.graphiql-editor-tool .graphiql-editor:not(.hidden)')
}

/** The names of the tabs. */
const tabs = (page: Page) => page.locator('.graphiql-tab-button').allTextContents()

test('every example runs at once on the demo venue', async t => {
  const page = await visitGraphiQL(t)
  const names = await tabs(page)
  const examples = (await readdir('../examples')).filter(name => name.endsWith('.graphql'))
  assert.equal(names.length, examples.length + 1, 'a tab for each example and one for a subscription')
  for (const name of names.filter(name => name !== 'LivePrices')) {
    await open(page, name)
    const { data, errors, extensions } = await answer(page)
    assert.equal(errors, undefined, name)
    assert.ok(Object.values(data).every(value => value !== null), name)
    assert.ok(extensions.cost.points > 0, name)
    await page.getByText(`cost: ${extensions.cost.points} points`).waitFor()
    await page.getByText(RegExp(`took: ${extensions.explain.upstreamCalls} calls?, .* from memory`)).waitFor()
  }
  await open(page, 'Portfolio')
  await answer(page)
  await screenshot(page, 'graphiql-portfolio')
})

test('the first example runs once by itself, and stored tabs do not run', async t => {
  const { page } = await visit(t, 'about:blank')
  const sent: string[] = []
  page.on('request', request => {
    const body = request.postData()
    if (body?.includes('PriceBoard')) sent.push(body)
  })
  await page.goto('/')
  const { data, errors } = JSON.parse(await answered(page))
  assert.equal(errors, undefined)
  assert.ok(data.tokens.length > 1)
  assert.equal(sent.length, 1)
  await eventually('the tabs in storage', () => page.evaluate(() => localStorage.getItem('graphiql:tabState') ?? ''), text => text.includes('PriceBoard'))
  await page.reload()
  await ready(page)
  await frames(page, 30)
  assert.equal(sent.length, 1)
})

test('a link opens its query and variables', async t => {
  const linked = 'query Linked($id: String!) {\n  token(tokenId: $id) {\n    id\n  }\n}'
  const { page } = await visit(t, `/?${new URLSearchParams({ query: linked, variables: '{"id": "1"}' })}`)
  await eventually('the query', () => query(page), text => text === linked)
  await eventually('the variables', () => textOf(page, '.graphiql-editor-tool'), text => text === '{"id": "1"}')
  assert.equal(await response(page), '', 'a link does not run by itself')
})

test('an operation is copied as code that runs', async t => {
  const page = await visitGraphiQL(t, { permissions: ['clipboard-read', 'clipboard-write'] })
  const copy = async (language: string) => {
    const last = await page.locator('.copied').elementHandle()
    await page.getByRole('button', { name: 'Copy as code' }).click()
    await page.getByRole('menuitem', { name: language, exact: true }).click()
    // The message hides itself after three seconds, which may pass unseen on a busy machine. But each copy shows a new message.
    await eventually('the message', () => page.evaluate(last => ({
      isNew: !last!.isConnected, text: document.querySelector('[role=status] .copied')!.textContent,
    }), last), ({ isNew, text }) => isNew && text === `Copied as ${language}`)
    return page.evaluate(() => navigator.clipboard.readText())
  }
  const source = await copy('fetch')
  const code = `${source}\nexport default { data, errors }`
  const { default: answer } = await import(`data:text/javascript,${encodeURIComponent(code)}`) as { default: { data: { tokens: object[] }; errors?: unknown } }
  assert.equal(answer.errors, undefined)
  assert.ok(answer.data.tokens.length > 1)
  assert.match(await copy('Apollo'), /useQuery\(document, \{\n  variables: \{\n/)
  assert.match(await copy('urql'), /from 'urql'[\s\S]*query PriceBoard/)
  assert.match(await copy('curl'), /^curl http:[\s\S]*X-Venue-Credentials: e[\s\S]*PriceBoard/)
  await headers(page)
  const secret = '{"Authorization": "Bearer canary"}'
  await eventually('the headers', async () => {
    await page.getByRole('textbox', { name: 'Headers' }).press('Control+a')
    await page.keyboard.insertText(secret)
    return headers(page)
  }, text => text === secret)
  const shared = await copy('curl')
  assert.ok(shared.includes('Authorization: ...') && !shared.includes('canary'), shared)
})

test('a query without a server says what to do', async t => {
  const { page, problems } = await visit(t, '/')
  await ready(page)
  await answered(page)
  await page.route('**/graphql', route => route.abort())
  assert.match((await answer(page)).errors[0].message, /cannot be reached: check that it runs/)
  await page.unroute('**/graphql')
  await page.route('**/graphql', route => route.fulfill({ body: '<html>' }))
  assert.match((await answer(page)).errors[0].message, /check the proxy/)
  problems.length = 0 // the browser reports requests that fail
})

test('it has the colours and the type of the board', async t => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await visitGraphiQL(t, { colorScheme })
    const { ours, theirs } = await page.evaluate(() => {
      const rgb = (color: string) => {
        const { style } = document.body
        style.color = color
        return getComputedStyle(document.body).color.match(/\d+/g)!.map(Number)
      }
      const style = getComputedStyle(document.querySelector('.graphiql-container')!)
      const names = { base: 'panel', neutral: 'text', primary: 'accent', success: 'up', warning: 'warn', error: 'down' }
      return {
        ours: Object.keys(names).map(name => rgb(`hsl(${style.getPropertyValue(`--color-${name}`)})`)),
        theirs: Object.values(names).map(name => rgb(style.getPropertyValue(`--${name}`))),
      }
    })
    ours.forEach((color, i) => color.forEach((channel, j) => assert.ok(Math.abs(channel - theirs[i]![j]!) <= 1, `${colorScheme}: ${color} is not ${theirs[i]}`)))
    assert.match(await page.locator('h1').evaluate(element => getComputedStyle(element).fontFamily), /^"?Geist/)
  }
})

test('figures are asked for only where they are wanted', async t => {
  const page = await visitGraphiQL(t)
  await page.getByRole('checkbox', { name: /cost/ }).uncheck()
  assert.equal((await answer(page)).extensions, undefined)
})

test('a subscription brings events over graphql-transport-ws', async t => {
  const page = await visitGraphiQL(t)
  const sent: { type: string; payload?: Record<string, string> }[] = []
  const events: { reason: string; price: { price: string } }[] = []
  page.on('websocket', socket => {
    socket.on('framesent', ({ payload }) => sent.push(JSON.parse(String(payload))))
    socket.on('framereceived', ({ payload }) => {
      const frame = JSON.parse(String(payload))
      if (frame.type === 'next') events.push(frame.payload.data.priceChanged)
    })
  })
  await open(page, 'LivePrices')
  const { tokenIds } = JSON.parse(await textOf(page, '.graphiql-editor-tool')) as { tokenIds: [string] }
  await execute(page)
  await eventually('the state of each token', async () => events.length, count => count >= tokenIds.length)
  assert.ok(events.slice(0, 3).every(({ reason }) => reason === 'INITIAL'))
  for (const price of [0.111, 0.222, 0.333]) {
    // The venue does not send a price that another change replaces at once. So set the price until the venue has sent it.
    await eventually('the new price', async () => (await control('price', { tokenId: tokenIds[0], price }), events.at(-1)), () => events.some(event => event.reason === 'CHANGE' && Number(event.price.price) === price))
  }
  await eventually('an event in sight', () => response(page), text => text.includes('"CHANGE"'))
  const log = JSON.parse(await response(page)) as { count: number; events: { at: string; data: object }[] }
  assert.ok(log.count >= log.events.length && log.events.length > 1 && log.events.every(({ data }) => data), 'the last events are shown, not just one')
  const init = sent.find(({ type }) => type === 'connection_init')
  assert.ok(init?.payload?.['X-Venue-Credentials'], 'the headers go into connection_init')
  await page.getByRole('button', { name: /stop query/i }).click()
  await eventually('the end', async () => sent.some(({ type }) => type === 'complete'), Boolean)
})

test('a subscription that the server refuses says what to do', async t => {
  const page = await visitGraphiQL(t)
  await page.routeWebSocket('**/graphql', socket => {
    socket.onMessage(message => {
      if (JSON.parse(String(message)).type === 'connection_init') void socket.close({ code: 4403, reason: 'Forbidden' })
    })
  })
  await page.reload()
  await ready(page)
  await open(page, 'LivePrices')
  await execute(page)
  const text = await eventually('the reason', () => response(page), text => text.includes('errors'))
  assert.match(text, /X-Venue-Credentials must be base64/)
  assert.match(text, /"closeCode": 4403/)
  await page.getByRole('button', { name: /execute query/i }).waitFor()
})

test('the documentation and the explorer show the schema', async t => {
  const page = await visitGraphiQL(t)
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click()
  await page.getByRole('link', { name: 'Query', exact: true }).click()
  await page.getByRole('link', { name: 'searchMarkets', exact: true }).click()
  await page.getByText('Search for markets.').waitFor()
  await wantAccessible(page)

  await page.getByRole('button', { name: 'Show GraphiQL Explorer' }).click()
  await page.locator('.graphiql-explorer-field-view', { hasText: /^serviceStatus$/ }).click()
  await eventually('the query', () => query(page), text => /^ {2}serviceStatus/m.test(text))
  await wantAccessible(page)
  await screenshot(page, 'graphiql-explorer')
})

test('it is light or dark, as the system is or as one likes', async t => {
  const page = await visitGraphiQL(t, { colorScheme: 'dark' })
  const ground = () => page.locator('.graphiql-container').evaluate(element => getComputedStyle(element).backgroundColor)
  const dark = await ground()
  await answer(page)
  await wantAccessible(page)
  await screenshot(page, 'graphiql-dark')
  await page.getByRole('button', { name: 'Open settings dialog' }).click()
  await page.getByRole('button', { name: 'Light', exact: true }).click()
  await eventually('another ground', ground, now => now !== dark)
  await wantAccessible(page)
  await page.getByRole('button', { name: 'Dark', exact: true }).click()
  await eventually('the ground', ground, now => now === dark)
})

test('credentials that are typed in stay in memory', async t => {
  const page = await visitGraphiQL(t)
  const demo = await headers(page)
  assert.ok(JSON.parse(demo)['X-Venue-Credentials'])
  await page.getByRole('textbox', { name: 'Headers' }).press('Control+a')
  const canary = btoa(JSON.stringify({ apiKey: 'canary', secret: 'canary', passphrase: 'canary' }))
  await page.keyboard.insertText(JSON.stringify({ 'X-Venue-Credentials': canary }))
  // GraphiQL stores the typed headers half a second later. It stores a query that is typed now after the headers.
  await page.getByRole('textbox', { name: 'Query', exact: true }).press('Control+End')
  await page.keyboard.insertText('# the last thing typed')
  const stored = () => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]))
  await eventually('storage', stored, text => text.includes('# the last thing typed'))
  await answer(page)
  await page.getByRole('button', { name: 'Show History' }).click()
  await page.locator('.graphiql-history-item-label', { hasText: 'PriceBoard' }).first().waitFor()
  const history = () => page.evaluate(() => localStorage.getItem('graphiql:queries') ?? '')
  await eventually('the history', history, text => text.includes('# the last thing typed'))
  const all = await stored()
  assert.ok(!all.includes(canary) && !all.includes(JSON.parse(demo)['X-Venue-Credentials']), all)
  assert.deepEqual(await page.evaluate(() => indexedDB.databases()), [])
  await page.reload()
  await eventually('the query', () => query(page), text => text.includes('# the last thing typed'))
  assert.equal(await headers(page), demo)
})

test('no credentials are offered for a venue that is no demo', async t => {
  const { page } = await visit(t, 'about:blank')
  await page.route('**/graphql', route =>
    route.request().postData()?.includes('demo') ? route.fulfill({ json: { data: { serviceStatus: { demo: false } } } }) : route.fallback(),
  )
  await page.goto('/')
  await ready(page)
  assert.equal(await headers(page), '')
})

test('the keyboard leaves every editor', async t => {
  const page = await visitGraphiQL(t)
  for (const name of ['Query', 'Variables']) {
    const editor = page.getByRole('textbox', { name, exact: true })
    for (const key of ['Tab', 'Shift+Tab']) {
      await editor.focus()
      await page.keyboard.press(key)
      assert.ok(!(await editor.evaluate(element => element === document.activeElement)), `${key} leaves ${name}`)
    }
  }
})

for (const [name, viewport] of Object.entries({ desktop, phone })) {
  test(`it is to be read and used on a ${name}`, async t => {
    const page = await visitGraphiQL(t, { viewport })
    const cut = await page.locator('.graphiql-query-editor .cm-comment').evaluateAll(comments => comments.map(comment => comment.getBoundingClientRect().right - innerWidth))
    assert.ok(cut.length > 0 && cut.every(by => by <= 0), `comments end in sight: ${cut}`)
    await wantAccessible(page)
    await screenshot(page, name === 'desktop' ? 'graphiql' : `graphiql-${name}`)
    const size = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight])
    assert.deepEqual(size, [viewport.width, viewport.height], 'nothing is out of sight')
    await page.getByRole('button', { name: 'Open short keys dialog' }).click()
    await page.getByRole('dialog').waitFor()
    await wantAccessible(page)
    await page.keyboard.press('Escape')
  })
}
