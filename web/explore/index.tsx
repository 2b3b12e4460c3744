// GraphiQL over this service.
import { useMemo, useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { GraphiQL } from 'graphiql'
import { explorerPlugin } from '@graphiql/plugin-explorer'
import 'graphiql/style.css'
import '@graphiql/plugin-explorer/style.css'
import { NamedEditors, named } from './accessible'
import { CopyAsCode } from './copy'
import { fetcherWith, isDemo } from './fetcher'
import { Figures } from './figures'
import { FirstAnswer } from './first'
import { storage } from './storage'
import { demoHeaders, tabs } from './tabs'
import '../design/tokens.css'
import './index.css'

const plugins = [named(explorerPlugin())]

/** Returns the operation in the page's address, such as /?query=…&variables=…, or undefined if the address has no query. */
function linked() {
  const parameters = new URLSearchParams(location.search)
  const query = parameters.get('query')
  return query === null ? undefined : { query, variables: parameters.get('variables') ?? '' }
}

/**
 * The operation of the tab that is open at first: the operation in the page's address, or the first tab if no tabs are stored. The
 * first tab is passed explicitly, because GraphiQL would open it without its variables.
 */
const first = linked() ?? (storage.getItem('graphiql:tabState') ? undefined : tabs[0])

function Explore({ demo }: { demo: boolean }) {
  const [extensions, setExtensions] = useState<unknown>()
  const [asking, setAsking] = useState(true)
  const asks = useRef(asking)
  asks.current = asking
  const fetcher = useMemo(() => fetcherWith(() => asks.current, setExtensions), [])
  return (
    <GraphiQL
      fetcher={fetcher}
      plugins={plugins}
      storage={storage}
      shouldPersistHeaders={false}
      defaultTabs={tabs}
      query={first?.query}
      variables={first?.variables}
      defaultEditorToolsVisibility="variables"
      defaultHeaders={demo ? demoHeaders : undefined}
    >
      <GraphiQL.Logo>
        <h1>oddsgraph</h1>
        <a href="live">Live board</a>
      </GraphiQL.Logo>
      <GraphiQL.Toolbar>
        {({ prettify, merge, copy }) => <>{prettify}{merge}{copy}<CopyAsCode /></>}
      </GraphiQL.Toolbar>
      <NamedEditors />
      {demo && first === tabs[0] && <FirstAnswer query={first!.query} />}
      <GraphiQL.Footer>
        <Figures extensions={extensions} asking={asking} onAsk={setAsking} />
      </GraphiQL.Footer>
    </GraphiQL>
  )
}

const root = createRoot(document.getElementById('root')!)
isDemo().then(demo => root.render(<Explore demo={demo} />))
