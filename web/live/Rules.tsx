// The rules texts of a question's legs, with the words in which they differ.
import { useMemo } from 'react'
import type { QuestionSubscription, RulesState } from './__generated__/operations'
import { differences } from './diff'
import { count, date, sentence } from './format'
import { tokenPath } from './route'

export type Question = QuestionSubscription['questionChanged']['question']
export type Leg = Question['legs'][number]

const states: Readonly<Record<RulesState, string>> = {
  CONFIRMED: 'The text is the one that was compared.', CHANGED: 'The text is not the one that was compared.', UNKNOWN: 'Whether the text is the one that was compared is not known.',
}

/** Shows the texts. The first one is compared with the second, and each other one with the first. */
export function Rules({ question: { legs, checkedAt, checkedBy } }: { question: Question }) {
  const texts = legs.map(({ market }) => market?.description ?? '')
  const parts = useMemo(() => texts.map((text, i) => {
    const other = texts[i === 0 ? 1 : 0]
    return text && other ? differences(text, other)[0] : [{ text, own: false }]
  }), texts)
  const differing = parts.flat().filter(({ own }) => own).reduce((sum, { text }) => sum + text.trim().split(/\s+/).length, 0)
  const known = texts.every(Boolean)
  return (
    <section className="panel rules" aria-labelledby="rules">
      <h2 id="rules">Rules</h2>
      <p className="detail">
        {!known ? 'A text is missing.' : differing === 0 ? 'The texts have the same words.' : `${count(differing)} ${differing === 1 ? 'word differs' : 'words differ'}: they are marked.`}
        {` Compared on ${date(checkedAt)}${checkedBy ? ` by ${checkedBy}` : ''}.`}
      </p>
      <div className="texts">
        {legs.map(({ venue, rules, market, token }, i) => (
          <article key={venue} aria-labelledby={`rules-${i}`}>
            <h3 id={`rules-${i}`}>
              <span className="tag venue">{venue}</span>
              <span className={`tag ${rules === 'CONFIRMED' ? 'won' : 'no'}`} title={states[rules]}>{sentence(rules)}</span>
            </h3>
            {market && <p><a href={tokenPath(market.marketId, token.tokenId)}>{market.question ?? market.marketId}</a>{token.outcome && `: ${token.outcome}`}</p>}
            <p className="text">{texts[i] ? parts[i]!.map(({ text, own }, n) => (own ? <mark key={n}>{text}</mark> : text)) : 'The venue gives no text now.'}</p>
            {rules !== 'CONFIRMED' && <p className="detail">{states[rules]}</p>}
          </article>
        ))}
      </div>
    </section>
  )
}
