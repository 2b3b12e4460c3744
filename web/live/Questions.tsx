// The list of questions on several venues, which the operator's file has.
import { useState } from 'react'
import { useQuery } from 'urql'
import { QuestionsDocument, ServiceDocument, type MatchKind } from './__generated__/operations'
import { count, date, reason } from './format'
import { useAgain } from './live'
import { questionPath, useTitle } from './route'
import { Source } from './Source'

const matches: Readonly<Record<MatchKind, string>> = { EXACT: 'Same bet', NEAR: 'Rules differ', RELATED: 'Only related' }

/** How closely the rules of a question's legs agree, in the judgement of a person. */
export const MatchTag = ({ match }: { match: MatchKind }) => <span className={match === 'EXACT' ? 'tag won' : 'tag no'}>{matches[match]}</span>

export function Questions() {
  useTitle('Questions')
  const [query, setQuery] = useState('')
  const [first, setFirst] = useState(25)
  const variables = { query, first }
  const [{ data, error, fetching }, ask] = useQuery({ query: QuestionsDocument, variables, requestPolicy: 'cache-and-network' })
  const [{ data: service }] = useQuery({ query: ServiceDocument })
  useAgain(error, ask)
  const file = service?.serviceStatus.questions
  const list = data?.questions
  if (list && query === '' && list.totalCount === 0) return <None />
  return (
    <>
      <div className="bar">
        <h1 tabIndex={-1}>Questions on several venues</h1>
        <form role="search" onSubmit={event => event.preventDefault()}>
          <label><span className="unseen">Search the questions</span><input type="search" value={query} onChange={event => setQuery(event.target.value)} placeholder="Search the questions" /></label>
        </form>
        <p className="found" role="status">{list && (list.totalCount === 0 ? 'No question fits.' : `${count(list.totalCount)} ${list.totalCount === 1 ? 'question' : 'questions'}`)}</p>
      </div>
      {error && <p role="alert">The questions could not be read: {reason(error)}</p>}
      {file?.error && <p role="status" className="notice">The file of questions has an error, so these are its earlier questions: {file.error}</p>}
      <ul className="questions">
        {list?.nodes.map(({ id, questionId, title, match, checkedAt, legs }) => (
          <li key={id}>
            <a href={questionPath(questionId)}>{title}</a>
            <MatchTag match={match} />
            {legs.map(({ venue }) => <span key={venue} className="tag venue">{venue}</span>)}
            <span className="detail">Compared on {date(checkedAt)}</span>
          </li>
        ))}
      </ul>
      <p className="below">
        {list && list.nodes.length < Math.min(100, list.totalCount) && <button type="button" aria-disabled={fetching} onClick={() => setFirst(100)}>More questions</button>}
        {list && list.totalCount > 100 && list.nodes.length === 100 && 'These are the first 100: search for the others.'}
        <Source of="Questions" document={QuestionsDocument} variables={variables} />
      </p>
    </>
  )
}

const None = () => (
  <>
    <h1 tabIndex={-1}>Questions on several venues</h1>
    <p className="panel">This service compares no questions: its operator has found none.</p>
    <p className="below"><a className="button" href="#/">All markets</a></p>
  </>
)
