// The guide for frontends. Tests of code that is also in the guide check that the guide has it.
import { readFileSync } from 'node:fs'

export const guide = readFileSync(new URL('../../docs/frontend.md', import.meta.url), 'utf8') // the compiled file is in dist
