// Serves an example app from its build, with the service behind the same origin, and opens it in a browser.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import { endpoint, visit, type Visit } from './browser'

/** Opens an app of examples/, which must be built, in a browser profile of its own. */
export async function example(t: TestContext, name: string): Promise<Visit> {
  const directory = fileURLToPath(new URL(`../../../examples/${name}/`, import.meta.url)) // from tests/dist
  const server = spawn(process.execPath, ['node_modules/vite/bin/vite.js', 'preview', '--host', '127.0.0.1', '--port', '0'], {
    cwd: directory, env: { ...process.env, ODDSGRAPH: new URL(endpoint).origin, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => server.kill())
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr]) {
      stream.on('data', chunk => {
        output += chunk
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output)
        if (found) resolve(found[0])
      })
    }
    server.on('exit', code => reject(new Error(`vite preview ended with ${code}: ${output}`)))
  })
  return visit(t, '/', { baseURL: url })
}
