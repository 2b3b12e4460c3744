import { defineConfig } from 'vite'

// The page and the service have one origin, so no origin has to be allowed.
const target = process.env['ODDSGRAPH'] ?? 'http://127.0.0.1:8080'

export default defineConfig({
  server: { proxy: { '/graphql': { target, ws: true } } },
  resolve: { preserveSymlinks: true }, // npm links to the kit in this repository
})
