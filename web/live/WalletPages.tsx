// The trades and the history of a wallet, newest first, page after page.
import { useEffect, useState, type ReactNode } from 'react'
import { useQuery, type TypedDocumentNode } from 'urql'
import { WalletHistoryDocument, WalletTradesDocument, type WalletHistoryQuery, type WalletTradesQuery } from './__generated__/operations'
import { cents, date, reason, sentence, shares, time, useMoney } from './format'
import { useAgain } from './live'
import { Gain } from './Portfolio'
import { direction } from './realised'
import { Source } from './Source'

interface Page<Node> { nodes: Node[]; pageInfo: { hasNextPage: boolean; endCursor?: string | null } }

/** Reads a list of the wallet, page after page. */
function usePages<Data, Node extends { id: string }>(document: TypedDocumentNode<Data, any>, address: string, page: (data: Data) => Page<Node> | null | undefined) {
  const [after, setAfter] = useState<string | null>(null)
  const [nodes, setNodes] = useState<Node[]>([])
  const variables = { address, after }
  const [{ data, error, fetching }, ask] = useQuery({ query: document, variables })
  useAgain(error, ask)
  const read = data && page(data)
  useEffect(() => {
    if (read) setNodes(nodes => [...new Map([...nodes, ...read.nodes].map(node => [node.id, node])).values()])
  }, [read])
  const more = read?.pageInfo.hasNextPage ? () => { if (!fetching) setAfter(read.pageInfo.endCursor ?? null) } : undefined
  return { nodes, error, more, empty: read !== undefined && nodes.length === 0, source: { document, variables } }
}

function List({ name, heads, pages, children }: { name: string; heads: string[]; pages: Pick<ReturnType<typeof usePages>, 'error' | 'more' | 'empty' | 'source'>; children: ReactNode }) {
  const { error, more, empty, source } = pages
  return (
    <>
      {error && <p role="alert">{reason(error)}</p>}
      <table className="positions" data-list={name.toLowerCase()}>
        <caption className="unseen">{name}, newest first</caption>
        <thead><tr>{heads.map((head, i) => <th key={head} scope="col" className={i > 1 ? `figure${i > 3 ? ' wide' : ''}` : undefined}>{head}</th>)}</tr></thead>
        <tbody>{empty ? <tr><td colSpan={heads.length}>Nothing yet.</td></tr> : children}</tbody>
      </table>
      <p className="below">
        {more && <button type="button" onClick={more}>More</button>}
        <Source of={name} {...source} />
      </p>
    </>
  )
}

const Name = ({ text, outcome }: { text: string; outcome: string | null | undefined }) => (
  <th scope="row"><span className="cell"><span className="cut">{text}</span>{outcome && <span className="tag">{outcome}</span>}</span></th>
)

const when = (instant: string) => `${date(instant)}, ${time(instant)}`

export function WalletTrades({ address }: { address: string }) {
  const pages = usePages(WalletTradesDocument, address, (data: WalletTradesQuery) => data.user?.trades)
  const { cell: { money }, headed } = useMoney()
  return (
    <List name="Trades" heads={['Market', 'Side', 'Price', 'Shares', headed('Fee'), 'Time']} pages={pages}>
      {pages.nodes.map(({ id, market, side, outcome, price, size, fee, timestamp }) => (
        <tr key={id}>
          <Name text={market?.question ?? '–'} outcome={outcome} />
          <td className={side === 'BUY' ? 'up' : 'down'}>{side === 'BUY' ? 'Buy' : side === 'SELL' ? 'Sell' : '–'}</td>
          <td className="figure">{cents(price)}</td>
          <td className="figure">{shares(size)}</td>
          <td className="figure wide">{money(fee)}</td>
          <td className="figure wide">{when(timestamp)}</td>
        </tr>
      ))}
    </List>
  )
}

export function WalletHistory({ address }: { address: string }) {
  const pages = usePages(WalletHistoryDocument, address, (data: WalletHistoryQuery) => data.user?.history)
  const { headed } = useMoney()
  return (
    <List name="History" heads={['Record', 'Kind', headed('Amount'), 'Shares', 'Time']} pages={pages}>
      {pages.nodes.map(({ id, kind, side, market, outcome, amount, size, timestamp }) => (
        <tr key={id}>
          <Name text={market?.question ?? 'Account'} outcome={outcome} />
          <td>{sentence(kind)}</td>
          <td className="figure"><Moved amount={amount} sign={direction({ kind, side })} /></td>
          <td className="figure">{size ? shares(size) : '–'}</td>
          <td className="figure wide">{when(timestamp)}</td>
        </tr>
      ))}
    </List>
  )
}

/** The money of a record, with the given sign. If sign is 0, it is unknown, and the amount is as the venue sent it. */
function Moved({ amount, sign }: { amount: string | null | undefined; sign: 1 | -1 | 0 }) {
  const { money } = useMoney().cell
  return amount && sign ? <Gain cell amount={String(sign * Math.abs(Number(amount)))} /> : money(amount)
}
