// The live board: markets, events, order books and a portfolio as they move.
import { lazy, StrictMode, Suspense, useCallback, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Provider, useQuery } from 'urql'
import { ServiceDocument } from './__generated__/operations'
import { Alerts } from './Alerts'
import { connect, ConnectionContext } from './connection'
import { EventPage } from './EventPage'
import { useFaults } from './useFaults'
import { useKeys } from './keys'
import { useAgain } from './live'
import { Market } from './Market'
import { Markets } from './Markets'
import { QuestionPage } from './QuestionPage'
import { Questions } from './Questions'
import { parse, useHash, usePlaces, useTitle } from './route'
import { QueriesContext, useQueries } from './Source'
import { Status } from './Status'
import { Stream } from './Stream'
import { VenuesContext } from './Venue'
import { Wallets } from './Wallets'
import { Watchlist } from './Watchlist'
import type { Wallet } from './wallet'
import '../design/tokens.css'
import './index.css'

const Faults = lazy(() => import('./Faults'))

const none: readonly [] = []

type Loaded = (typeof import('./Palette'))['default']

function Board() {
  const hash = useHash()
  const route = parse(hash)
  const [wallet, setWallet] = useState<Wallet>()
  const [palette, setPalette] = useState(false)
  const Palette = usePalette(palette)
  const [{ data, error }, ask] = useQuery({ query: ServiceDocument })
  const [faults, setFaults] = useState(false)
  const [queries, toggleQueries] = useQueries()
  const demo = data?.serviceStatus.demo ?? (error ? false : undefined)
  const venue = data?.serviceStatus.venue
  const accounts = venue?.unsupported.includes('positions') ? 'none' : venue?.publicAccounts ? 'public' : 'owners'
  const controlled = useFaults(demo === true)
  useAgain(error, ask)
  usePlaces()
  useKeys(useCallback(() => setPalette(true), []))
  const link = (page: string, path: string, name: string) => (
    <a href={path} aria-current={route.page === page ? 'page' : undefined}>{name}</a>
  )
  return (
    <VenuesContext value={data?.serviceStatus.venues ?? none}>
      <QueriesContext value={queries}>
        <a className="skip" href="#main" onClick={event => { event.preventDefault(); document.querySelector<HTMLElement>('main')?.focus() }}>Skip to the content</a>
        <header>
          <a className="name" href="#/" tabIndex={-1}><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 12 5 6l4 4 6-8" /></svg>oddsgraph</a>
          <nav aria-label="Pages">
            {link('markets', '#/', 'Markets')}
            {link('watchlist', '#/watchlist', 'Watchlist')}
            {link('portfolio', '#/portfolio', 'Portfolio')}
            <a href="./">GraphiQL</a>
            {data?.serviceStatus.questions?.count ? link('questions', '#/questions', 'Questions') : undefined}
          </nav>
          <button type="button" className="tool find" onClick={() => setPalette(true)}>Go to<kbd>Ctrl K</kbd></button>
          <button type="button" className="tool" aria-pressed={queries} aria-label="Queries behind the panels" title="Show the query behind each panel" onClick={toggleQueries}>{'</>'}</button>
          {controlled && <button type="button" className="tool" aria-expanded={faults} onClick={() => setFaults(!faults)}>Faults</button>}
          <Status />
        </header>
        {faults && <Suspense><Faults route={route} venues={data?.serviceStatus.venues ?? none} /></Suspense>}
        <main id="main" tabIndex={-1}>
          {route.page === 'markets' && <Markets listing={route.listing} />}
          {route.page === 'market' && <Market key={route.marketId} {...route} />}
          {route.page === 'event' && <EventPage key={route.eventId} {...route} />}
          {route.page === 'question' && <QuestionPage key={route.questionId} {...route} />}
          {route.page === 'questions' && <Questions />}
          {route.page === 'watchlist' && <Watchlist />}
          {route.page === 'portfolio' && <Wallets demo={demo} accounts={accounts} cash={!venue?.unsupported.includes('cash')} wallet={wallet} onWallet={setWallet} />}
          {route.page === 'unknown' && <Unknown />}
        </main>
        <Alerts />
        {palette && Palette && <Palette onClose={() => setPalette(false)} />}
        {demo && <footer>Demo venue: nothing shown is real money.</footer>}
      </QueriesContext>
    </VenuesContext>
  )
}

/** Returns the palette once its code is loaded: soon after the page, so that the palette opens at once and misses no key. */
function usePalette(open: boolean) {
  const [palette, setPalette] = useState<Loaded>()
  useEffect(() => {
    if (palette) return
    const load = () => void import('./Palette').then(({ default: code }) => setPalette(() => code), () => {}) // loads again when it is opened
    const timer = setTimeout(load, open ? 0 : 2000)
    return () => clearTimeout(timer)
  }, [open, palette])
  return palette
}

function Unknown() {
  useTitle('Not found')
  return (
    <>
      <h1 tabIndex={-1}>There is no such page</h1>
      <p className="panel">The address may be mistyped.</p>
      <p className="below"><a className="button" href="#/">All markets</a></p>
    </>
  )
}

const connection = connect()

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <ConnectionContext value={connection}>
      <Provider value={connection.client}>
        <Stream>
          <Board />
        </Stream>
      </Provider>
    </ConnectionContext>
  </StrictMode>,
)
