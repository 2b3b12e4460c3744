// Writes src/__generated__/operations.ts, the types and typed documents of what is in operations/ and in the examples,
// installs the client kit as npm would, and makes the directory of relay-compiler, which reads no schema outside of src.
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { codegen } from '@graphql-codegen/core'
import * as typedDocuments from '@graphql-codegen/typed-document-node'
import * as operations from '@graphql-codegen/typescript-operations'
import { parse } from 'graphql'

const root = new URL('.', import.meta.url)
const read = async (path) => parse(await readFile(new URL(path, root), 'utf8'))

const documents = []
for (const directory of ['operations/', '../examples/']) {
  for (const name of await readdir(new URL(directory, root))) {
    if (name.endsWith('.graphql')) documents.push({ location: directory + name, document: await read(directory + name) })
  }
}

const code = await codegen({
  filename: 'operations.ts',
  schema: await read('../schema.graphqls'),
  documents,
  config: {
    scalars: { ...JSON.parse(await readFile(new URL('../web/kit/scalars.json', root), 'utf8')), Decimal: { input: 'string', output: '@oddsgraph/kit#Decimal' } },
    strictScalars: true,
    useTypeImports: true,
  },
  plugins: [{ operations: {} }, { typedDocuments: {} }],
  pluginMap: { operations, typedDocuments },
})
for (const directory of ['src/__generated__/', 'src/relay/__generated__/']) await mkdir(new URL(directory, root), { recursive: true })
await writeFile(new URL('src/__generated__/operations.ts', root), code)
await copyFile(new URL('../schema.graphqls', root), new URL('src/__generated__/schema.graphql', root))

const kit = new URL('node_modules/@oddsgraph/kit/', root)
await rm(kit, { recursive: true, force: true })
const { files } = JSON.parse(await readFile(new URL('../web/kit/package.json', root), 'utf8'))
for (const name of ['package.json', ...files]) await cp(new URL(`../web/kit/${name}`, root), new URL(name, kit), { recursive: true })
