// Copies the schema to where relay-compiler reads it.
import { copyFile, mkdir } from 'node:fs/promises'

await mkdir(new URL('src/__generated__/', import.meta.url), { recursive: true })
await copyFile(new URL('../../schema.graphqls', import.meta.url), new URL('src/schema.graphql', import.meta.url))
