// The open orders of a wallet, updated live when they are filled.
import { applyOrders } from '../kit/lists'
import { OrdersDocument, type OrdersSubscription, type OrdersSubscriptionVariables } from './__generated__/operations'
import { cents, reason, shares, time } from './format'
import { useLive } from './live'
import { Source } from './Source'

type Order = OrdersSubscription['ordersChanged']['changed'][number]

export function Orders({ address }: { address: string }) {
  const variables = { address }
  const { data: orders, error } = useLive<OrdersSubscription, Order[], OrdersSubscriptionVariables>(
    { query: OrdersDocument, variables }, (before = [], { ordersChanged }) => applyOrders(before, ordersChanged),
  )
  return (
    <>
      {error && <p role="alert">{reason(error)}</p>}
      <table className="positions" data-list="orders">
        <caption className="unseen">Open orders</caption>
        <thead>
          <tr>
            <th scope="col">Market</th><th scope="col">Side</th><th scope="col" className="figure">Price</th>
            <th scope="col" className="figure">Filled</th><th scope="col" className="figure wide">Shares</th><th scope="col" className="figure wide">Placed</th>
          </tr>
        </thead>
        <tbody>
          {orders?.length === 0 && <tr><td colSpan={6}>No open orders.</td></tr>}
          {orders?.map(({ id, market, marketId, side, outcome, price, size, filledSize, createdAt }) => (
            <tr key={id}>
              <th scope="row"><span className="cell"><span className="cut">{market?.question ?? marketId}</span><span className="tag">{outcome}</span></span></th>
              <td className={side === 'BUY' ? 'up' : 'down'}>{side === 'BUY' ? 'Buy' : side === 'SELL' ? 'Sell' : '–'}</td>
              <td className="figure">{cents(price)}</td>
              <td className="figure">{shares(filledSize)}</td>
              <td className="figure wide">{shares(size)}</td>
              <td className="figure wide">{createdAt ? time(createdAt) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="below"><Source of="Orders" document={OrdersDocument} variables={variables} /></p>
    </>
  )
}
