import { defineConfig } from 'vite'

// The proxy gives the page and the service the same origin, so the service does not have to allow another origin.
const target = process.env['ODDSGRAPH'] ?? 'http://127.0.0.1:8080'

export default defineConfig({
  server: { proxy: { '/graphql': { target, ws: true } } },
  resolve: { preserveSymlinks: true }, // npm installs the kit of this repository as a symbolic link
})
