// Writes src/__generated__/operations.ts, the types and typed documents of what is in operations/ and in the examples,
// copies the kit of web/kit, as an app would, and makes room for what relay-compiler writes, which reads no schema outside
// of src.
import { copyFile, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
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
    scalars: JSON.parse(await readFile(new URL('../web/kit/scalars.json', root), 'utf8')),
    strictScalars: true,
    useTypeImports: true,
  },
  plugins: [{ operations: {} }, { typedDocuments: {} }],
  pluginMap: { operations, typedDocuments },
})
for (const directory of ['src/__generated__/kit/', 'src/relay/__generated__/']) await mkdir(new URL(directory, root), { recursive: true })
await writeFile(new URL('src/__generated__/operations.ts', root), code)
await copyFile(new URL('../schema.graphqls', root), new URL('src/__generated__/schema.graphql', root))
await cp(new URL('../web/kit/', root), new URL('src/__generated__/kit/', root), { recursive: true, filter: name => !name.includes('node_modules') })
