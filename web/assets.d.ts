// What build.mjs lets a module import besides modules.
declare module '*.css'

declare module '*.graphql' {
  const text: string
  export default text
}

/** The operations of examples/, by name, with the variables that stand beside them. */
declare module 'examples' {
  const examples: { name: string; query: string; variables: string }[]
  export default examples
}
