// The imports, other than modules, that build.mjs supports.
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
