// The imports that build.mjs supports in addition to modules of JavaScript and TypeScript.
declare module '*.css'

declare module '*.graphql' {
  const text: string
  export default text
}

/** The operations of examples/, sorted by name. The variables come from the .json file of the same name. */
declare module 'examples' {
  const examples: { name: string; query: string; variables: string }[]
  export default examples
}
