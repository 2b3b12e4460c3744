// Builds dist/: a page for each of pages, with modules and styles of hashed names in assets/, compressed copies of both where
// they are smaller, the client kit as kit.tgz, the documents that the pages send, and the licences of the npm packages in the pages.
// It builds tests/ for Node.js, into tests/dist. A release sets VERSION, which the kit then has.
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { build } from 'esbuild'
import { writeDocuments } from './documents.mjs'
import { writeLicenses } from './licenses.mjs'

const root = new URL('.', import.meta.url)
const dist = new URL('dist/', root)

/** The pages by the names of their files: the entry that each loads. */
const pages = { 'index.html': 'explore', 'live.html': 'live' }

/** Lets modules import the operations of examples/ as 'examples'. */
const examples = {
  name: 'examples',
  setup(build) {
    const directory = new URL('../examples/', root)
    build.onResolve({ filter: /^examples$/ }, () => ({ path: 'examples', namespace: 'examples' }))
    build.onLoad({ filter: /.*/, namespace: 'examples' }, async () => {
      const names = (await readdir(directory)).filter(name => name.endsWith('.graphql')).map(name => name.slice(0, -'.graphql'.length))
      const read = name => readFile(new URL(name, directory), 'utf8')
      const list = await Promise.all(
        names.sort().map(async name => ({ name, query: await read(`${name}.graphql`), variables: await read(`${name}.json`) })),
      )
      return { contents: JSON.stringify(list), loader: 'json' }
    })
  },
}

/** Leaves GraphiQL's fonts out: the page has those of design/. */
const fonts = {
  name: 'fonts',
  setup(build) {
    build.onLoad({ filter: /graphiql\/dist\/style\.css$/ }, async ({ path }) => (
      { contents: (await readFile(path, 'utf8')).replace(/@font-face\s*\{[^}]*\}/g, ''), loader: 'css' }))
  },
}

/** Puts our own parts in the place of GraphiQL's. */
const parts = {
  name: 'parts',
  setup(build) {
    const part = name => ({ path: fileURLToPath(new URL(`explore/parts/${name}`, root)) })
    build.onResolve({ filter: /^\.\/ui\/tabs\.js$/ }, () => part('tabs.tsx'))
    build.onResolve({ filter: /^react-style-singleton$/ }, () => part('style-singleton.ts'))
  },
}

await Promise.all((await readdir(dist)).filter(name => name !== '.gitkeep').map(name => rm(new URL(name, dist), { recursive: true })))

const built = await build({
  absWorkingDir: fileURLToPath(root),
  entryPoints: Object.values(pages).map(name => ({ in: `${name}/index.tsx`, out: name })),
  bundle: true,
  splitting: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  minify: true,
  legalComments: 'linked',
  define: { 'process.env.NODE_ENV': '"production"' },
  loader: { '.graphql': 'text', '.woff2': 'file' },
  plugins: [examples, fonts, parts],
  outdir: 'dist/assets',
  entryNames: '[name]-[hash]',
  chunkNames: 'chunk-[hash]',
  assetNames: '[name]-[hash]',
  metafile: true,
})

for (const [page, name] of Object.entries(pages)) {
  const [script, output] = Object.entries(built.metafile.outputs).find(([, output]) => output.entryPoint === `${name}/index.tsx`)
  const url = path => path.replace(/^dist\//, '')
  const tags = output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => `<link rel="modulepreload" href="${url(path)}">`)
  if (output.cssBundle) tags.unshift(`<link rel="stylesheet" href="${url(output.cssBundle)}">`)
  const font = Object.entries(built.metafile.outputs).find(([path, { inputs }]) => path.endsWith('.woff2') && Object.keys(inputs).some(input => input.includes('geist')))
  tags.unshift(`<link rel="preload" as="font" type="font/woff2" crossorigin href="${url(font[0])}">`)
  tags.push(`<script type="module" src="${url(script)}"></script>`)
  const html = await readFile(new URL(`${name}/index.html`, root), 'utf8')
  await writeFile(new URL(page, dist), html.replace('</head>', `${tags.map(tag => `  ${tag}\n`).join('')}</head>`))
}

// Node's own functions compress in threads, so all files at once.
const compressed = /\.(html|js|css|svg|txt)$/
await Promise.all(
  (await readdir(dist, { recursive: true })).filter(name => compressed.test(name)).map(async name => {
    const file = new URL(name, dist)
    const text = await readFile(file)
    const params = { [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
    await writeFile(`${file.pathname}.br`, await promisify(brotliCompress)(text, { params }))
    await writeFile(`${file.pathname}.gz`, await promisify(gzip)(text, { level: 9 }))
  }),
)

// The client kit as an npm package. npm packs equal files into equal bytes.
const kit = await mkdtemp(join(tmpdir(), 'kit-'))
await cp(new URL('kit/', root), kit, { recursive: true })
const version = /^v?(\d+\.\d+\.\d+.*)$/.exec(process.env.VERSION ?? '')?.[1]
const manifest = JSON.parse(await readFile(join(kit, 'package.json'), 'utf8'))
await writeFile(join(kit, 'package.json'), JSON.stringify({ ...manifest, version: version ?? manifest.version }, null, 2))
const packed = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', fileURLToPath(dist)], { cwd: kit })
await rm(kit, { recursive: true })
await rename(new URL(JSON.parse(packed.stdout)[0].filename.replace('@', '').replace('/', '-'), dist), new URL('kit.tgz', dist))

await writeDocuments()

await writeLicenses(Object.keys(built.metafile.inputs))

await rm(new URL('tests/dist/', root), { recursive: true, force: true })
await build({
  absWorkingDir: fileURLToPath(root),
  entryPoints: (await readdir(new URL('tests/', root))).filter(name => name.endsWith('.test.ts')).map(name => `tests/${name}`),
  bundle: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  sourcemap: true,
  outdir: 'tests/dist',
})
