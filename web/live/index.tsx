// The live board: markets, order books and a portfolio as they move.
import { StrictMode, useEffect, useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Provider, useQuery } from 'urql'
import { ServiceDocument } from './__generated__/operations'
import { connect, ConnectionContext } from './connection'
import { useAgain } from './live'
import { Market } from './Market'
import { Markets } from './Markets'
import { Portfolio } from './Portfolio'
import { parse, useHash } from './route'
import { SignIn } from './SignIn'
import { Status } from './Status'
import { Stream } from './Stream'
import type { Wallet } from './wallet'
import './index.css'

function Board() {
  const hash = useHash()
  const route = parse(hash)
  const [wallet, setWallet] = useState<Wallet>()
  const [{ data, error }, ask] = useQuery({ query: ServiceDocument })
  const demo = data?.serviceStatus.demo ?? false
  useAgain(error, ask)
  useAnnouncedPages(`${hash} ${wallet?.address}`)
  return (
    <>
      <a className="skip" href="#main" onClick={event => { event.preventDefault(); document.querySelector<HTMLElement>('main')?.focus() }}>Skip to the content</a>
      <header>
        <span className="name">oddsgraph</span>
        <nav aria-label="Pages">
          <a href="#/" aria-current={route.page !== 'portfolio' ? 'page' : undefined}>Markets</a>
          <a href="#/portfolio" aria-current={route.page === 'portfolio' ? 'page' : undefined}>Portfolio</a>
          <a href="/">GraphiQL</a>
        </nav>
        <Status />
      </header>
      <main id="main" tabIndex={-1}>
        {route.page === 'markets' && <Markets />}
        {route.page === 'market' && <Market key={route.marketId} {...route} />}
        {route.page === 'portfolio' && (wallet ? <Portfolio wallet={wallet} onClose={() => setWallet(undefined)} /> : <SignIn demo={demo} onWallet={setWallet} />)}
      </main>
      {demo && <footer>Demo venue: nothing shown is real money.</footer>}
    </>
  )
}

/** After a change of what is shown, it is at its top and its heading has the focus, as after a load. */
function useAnnouncedPages(page: string) {
  const shown = useRef(page)
  useEffect(() => {
    if (shown.current === page) return
    shown.current = page
    scrollTo(0, 0)
    document.querySelector('h1')?.focus({ preventScroll: true })
  }, [page])
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
