// The page of a question on several venues: whether its legs are comparable, their prices and books side by side, and their rules.
import { lazy, Suspense, useState } from 'react'
import { useQuery } from 'urql'
import { QuestionDocument, ServiceDocument, type NotComparableCode, type QuestionSubscription, type QuestionSubscriptionVariables } from './__generated__/operations'
import { useConnection, useLink } from './connection'
import { date, exactCents, reason } from './format'
import { isLasting, useLive } from './live'
import { usePrices } from './prices'
import { LegBooks, NotComparable, Prices } from './QuestionPrices'
import { MatchTag } from './Questions'
import { useTitle } from './route'
import { Rules, type Question } from './Rules'
import { Source } from './Source'

const Compare = lazy(() => import('./Compare'))

/** A question as an event had it, and the session of the socket that delivered the event. */
export type Heard = Question & { session: number; ended: boolean }

const reasons: Readonly<Record<NotComparableCode, string>> = {
  NEAR: 'The headline is the same, but the rules differ',
  RELATED: 'The questions are only related, so their prices are never compared',
  RULES_CHANGED: 'the rules text is not the one that was compared',
  RULES_UNKNOWN: 'nobody has confirmed the rules text, or the venue gives none',
  MARKET_UNKNOWN: 'the venue does not know this market',
  MARKET_NOT_OPEN: 'the market takes no orders now',
  NO_BOOK: 'there is no order book',
  STALE: 'the prices are too old, and newer ones could not be read yet',
  VENUE_FAILED: 'the venue does not answer',
}

export function QuestionPage({ questionId }: { questionId: string }) {
  const { link } = useConnection()
  const [anyway, setAnyway] = useState(false)
  const variables = { questionId, anyway }
  const { data, error, ended } = useLive<QuestionSubscription, Omit<Heard, 'ended'>, QuestionSubscriptionVariables>(
    { query: QuestionDocument, variables }, (_, { questionChanged: { question } }) => ({ ...question, session: link().session }),
  )
  const { state, session } = useLink()
  const behind = data !== undefined && (ended || state !== 'open' || session !== data.session)
  const question = data && { ...data, ended, comparable: data.comparable && !behind }
  useTitle(question?.title ?? 'Question')
  if (isLasting(error)) return <Unknown problem={reason(error!)} />
  const shown = question !== undefined && question.match !== 'RELATED' && (question.comparable || anyway)
  return (
    <>
      <p className="crumbs"><a href="#/">Markets</a> · <a href="#/questions">Questions</a> {question && <MatchTag match={question.match} />}</p>
      <div className="title">
        <h1 tabIndex={-1}>{question?.title ?? 'Reading the question…'}</h1>
        <Source of="Question" document={QuestionDocument} variables={variables} />
      </div>
      {error && !question && <p role="alert">{reason(error)}</p>}
      {question && <Verdict question={question} behind={behind} anyway={anyway} onAnyway={setAnyway} />}
      {question && shown && <Best question={question} />}
      <div className={shown ? 'question shown' : 'question'} aria-busy={!question}>
        {question && shown && <>
          <Prices question={question} />
          <LegBooks question={question} />
          <History question={question} />
        </>}
        {question && <Rules question={question} />}
      </div>
    </>
  )
}

interface VerdictProps {
  question: Heard
  /** Whether the question may have changed since its last event. */
  behind: boolean
  anyway: boolean
  onAnyway: (anyway: boolean) => void
}

/** Says whether the legs are comparable, or why they are not. */
function Verdict({ question, behind, anyway, onAnyway }: VerdictProps) {
  const { comparable, checkedAt, checkedBy, match, differences } = question
  // A leg can have one reason twice, for its market and for its book.
  const different = [...new Map(question.reasons.map(reason => [`${reason.code} ${reason.venue}`, reason])).values()]
  if (comparable) {
    return (
      <div className="verdict good" role="status">
        <p><strong>Comparable.</strong> The rules texts are those that {checkedBy || 'a person'} compared on {date(checkedAt)}. A venue may have more rules elsewhere.</p>
      </div>
    )
  }
  return (
    <div className="verdict bad">
      <div role="status">
        <p><strong>Not comparable.</strong> {match !== 'RELATED' && (anyway ? 'These prices may be old, or of different bets.' : 'No prices are shown.')}</p>
        <ul>
          {behind && <li>The connection to this service is interrupted</li>}
          {different.map(({ code, venue, message }) => (
            <li key={`${code} ${venue}`}>
              {venue ? `${venue}: ` : ''}{reasons[code] ?? message}
              {venue === null && differences.length > 0 && <ul>{differences.map(text => <li key={text}>{text}</li>)}</ul>}
            </li>
          ))}
        </ul>
      </div>
      {match !== 'RELATED' && <button type="button" aria-pressed={anyway} onClick={() => onAnyway(!anyway)}>Show anyway</button>}
    </div>
  )
}

/** Where a taker buys and sells best, and how far the venues are apart. */
function Best({ question }: { question: Heard }) {
  const { buy, sell, spread } = question
  const at = (best: Question['buy']) => (best ? <><strong>{exactCents(best.priceAfterFee ?? best.price)}</strong> {best.leg.venue}</> : '–')
  const fee = (best: Question['buy']) => best?.priceAfterFee && ', after the fee'
  return (
    <dl className="facts best">
      <div><dt>Buy best{fee(buy)}</dt><dd data-best="buy">{at(buy)}</dd></div>
      <div><dt>Sell best{fee(sell)}</dt><dd data-best="sell">{at(sell)}</dd></div>
      <div>
        <dt>Spread, before fees</dt>
        <dd data-spread={spread}>{spread ? exactCents(spread).replace('-', '−') : '–'}{Number(spread) < 0 && ', the prices cross'} <NotComparable question={question} /></dd>
      </div>
    </dl>
  )
}

/** The prices of the legs in one chart, with their distance. */
function History({ question: { legs } }: { question: Heard }) {
  const { quotes } = usePrices(legs.map(({ token }) => token.tokenId))
  return (
    <Suspense fallback={<section className="panel chart" />}>
      <Compare title="Prices" apart outcomes={legs.map(({ token, venue }) => ({ tokenId: token.tokenId, name: venue }))} quotes={quotes} />
    </Suspense>
  )
}

function Unknown({ problem }: { problem: string }) {
  const [{ data }] = useQuery({ query: ServiceDocument })
  return (
    <>
      <h1 tabIndex={-1}>Question</h1>
      <p role="alert">{problem}</p>
      <p className="below">{data?.serviceStatus.questions?.count ? <a className="button" href="#/questions">All questions</a> : <a className="button" href="#/">All markets</a>}</p>
    </>
  )
}
