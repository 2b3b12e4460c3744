// An amount that has risen or fallen. An arrow, a sign and a colour show the direction.

interface Props {
  by: number
  /** The text of the amount, with its sign. */
  children: string
  /** The words that a screen reader says in place of the arrow. */
  words?: [up: string, down: string, same: string]
}

export function Change({ by, children, words = ['up', 'down', 'unchanged'] }: Props) {
  const which = by > 0 ? 0 : by < 0 ? 1 : 2
  return (
    <span className={['change up', 'change down', 'change'][which]}>
      <span aria-hidden="true">{['▲', '▼', '•'][which]}</span>
      <span className="unseen">{words[which]} </span> {children}
    </span>
  )
}
