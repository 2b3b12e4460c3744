// Writes dist/documents.json: the texts of all GraphQL documents that the pages send, byte for byte. A service that executes
// only trusted documents trusts these, so that its own pages work.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { getIntrospectionQuery } from 'graphql'

const root = new URL('.', import.meta.url)
const dist = new URL('dist/', root)

/** Prints a document as the board's client does: its cache adds __typename to queries. */
const asSent = `
import { createRequest, formatDocument, stringifyDocument } from '@urql/core'
import * as generated from './live/__generated__/operations'

const operation = document => document.definitions?.find(({ kind }) => kind === 'OperationDefinition')?.operation

export default Object.values(generated).filter(operation).map(document => {
  const { query } = createRequest(document, {})
  return stringifyDocument(operation(query) === 'subscription' ? query : formatDocument(query))
})`

/** The texts that the board sends. */
async function board() {
  const { outputFiles } = await build({
    absWorkingDir: fileURLToPath(root),
    stdin: { contents: asSent, resolveDir: fileURLToPath(root) },
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
  })
  return (await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)).default
}

/** The texts of a directory's .graphql files. GraphiQL sends the text in its editor. */
async function files(directory) {
  const url = new URL(directory, root)
  const names = (await readdir(url)).filter(name => name.endsWith('.graphql')).sort()
  return Promise.all(names.map(name => readFile(new URL(name, url), 'utf8')))
}

export async function writeDocuments() {
  const texts = [...await board(), ...await files('explore/'), ...await files('../examples/'), getIntrospectionQuery({ descriptions: true })]
  await writeFile(new URL('documents.json', dist), JSON.stringify([...new Set(texts)]))
}
