import { defineConfig } from 'vite'

// The proxy gives the page and the service the same origin, so the service does not have to allow another origin.
const target = process.env['ODDSGRAPH'] ?? 'http://127.0.0.1:8080'

// A bearer token and a wallet of the demo venue.
const { TOKEN: token = 'demo-50', WALLET: wallet = '0x2222222222222222222222222222222222222222' } = process.env

export default defineConfig({
  define: { TOKEN: JSON.stringify(token), WALLET: JSON.stringify(wallet) },
  server: { proxy: { '/graphql': { target, ws: true } } },
  resolve: { preserveSymlinks: true }, // npm installs the kit of this repository as a symbolic link
})
