// GraphiQL over this service.
import { createRoot } from 'react-dom/client'
import { GraphiQL } from 'graphiql'
import { createGraphiQLFetcher } from '@graphiql/toolkit'
import { explorerPlugin } from '@graphiql/plugin-explorer'
import examples from 'examples'
import 'graphiql/style.css'
import '@graphiql/plugin-explorer/style.css'
import './index.css'

const endpoint = new URL('/graphql', location.href).href
const fetcher = createGraphiQLFetcher({ url: endpoint, subscriptionUrl: endpoint.replace(/^http/, 'ws') })
const explorer = explorerPlugin()

createRoot(document.getElementById('root')!).render(
  <GraphiQL fetcher={fetcher} plugins={[explorer]} defaultTabs={examples.map(({ query, variables }) => ({ query, variables }))} />,
)
