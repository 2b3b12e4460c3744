// Writes live/__generated__/operations.ts: the types and typed documents of the board's operations.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { codegen } from '@graphql-codegen/core'
import * as typedDocuments from '@graphql-codegen/typed-document-node'
import * as operations from '@graphql-codegen/typescript-operations'
import { parse } from 'graphql'

const root = new URL('.', import.meta.url)
const read = async path => parse(await readFile(new URL(path, root), 'utf8'))

const files = await readdir(new URL('live/', root), { recursive: true })
const documents = await Promise.all(
  files
    .filter(name => name.endsWith('.graphql'))
    .sort()
    .map(async name => ({ location: name, document: await read(`live/${name}`) })),
)

const code = await codegen({
  filename: 'operations.ts',
  schema: await read('../schema.graphqls'),
  documents,
  config: {
    scalars: JSON.parse(await readFile(new URL('kit/scalars.json', root), 'utf8')),
    strictScalars: true,
    useTypeImports: true,
  },
  plugins: [{ operations: {} }, { typedDocuments: {} }],
  pluginMap: { operations, typedDocuments },
})
await mkdir(new URL('live/__generated__/', root), { recursive: true })
await writeFile(new URL('live/__generated__/operations.ts', root), code)
