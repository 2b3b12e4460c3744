// Writes what the pages contain of others: dist/licenses.txt with the licence texts of the bundled npm packages, and
// dist/packages.json with their names, versions and SPDX licences, which a release lists in its SBOM.
import { readdir, readFile, writeFile } from 'node:fs/promises'

const root = new URL('.', import.meta.url)
const licence = /^(licen[cs]e|copying|notice)([._-].*)?$/i

/** Returns the folders of the packages that esbuild read files from, such as node_modules/react/. */
function folders(inputs) {
  const found = inputs.map(path => /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(path)?.[0]).filter(folder => folder !== undefined)
  return [...new Set(found)].sort()
}

/** Reads name, version, licence and licence texts of a package. */
async function describe(folder) {
  const url = new URL(folder, root)
  const { name, version, license } = JSON.parse(await readFile(new URL('package.json', url), 'utf8'))
  const names = (await readdir(url)).filter(file => licence.test(file)).sort()
  const texts = await Promise.all(names.map(file => readFile(new URL(file, url), 'utf8')))
  if (license === undefined && texts.length === 0) throw new Error(`${name} ${version} names no licence`)
  return { name, version, license: license?.type ?? license, texts: texts.map(text => text.replaceAll('\r\n', '\n').trim()) }
}

/** inputs are the files that the bundles were made of, relative to this folder. */
export async function writeLicenses(inputs) {
  const packages = await Promise.all(folders(inputs).map(describe))
  const line = '='.repeat(80)
  const text = packages.map(({ name, version, license, texts }) =>
    [line, `${name} ${version} (${license})`, '', ...(texts.length > 0 ? texts : ['The package holds no licence file; its package.json names this licence.']), ''].join('\n'))
  await writeFile(new URL('dist/licenses.txt', root), text.join('\n'))
  await writeFile(new URL('dist/packages.json', root), JSON.stringify(packages.map(({ name, version, license }) => ({ name, version, license }))))
}
