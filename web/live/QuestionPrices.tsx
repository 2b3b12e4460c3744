// The best prices of a question's legs, and their books side by side.
import { Ladder } from './Book'
import { centDecimals, plainCents } from './format'
import { Freshness } from './Freshness'
import { summed } from './levels'
import type { Heard } from './QuestionPage'
import { tokenPath } from './route'
import type { Leg } from './Rules'

/** What a taker pays (sign 1) or gets (sign -1) for a share after the fee, before rounding; undefined if the fee is not known. */
const afterFee = (price: string | undefined, rate: string | null | undefined, sign: 1 | -1) =>
  price === undefined || rate == null ? undefined : String(Number(price) + sign * Number(rate) * Number(price) * (1 - Number(price)))

/** Marks prices that are shown although they are not comparable. */
export const NotComparable = ({ question }: { question: Heard }) => !question.comparable && <span className="tag no">Not comparable</span>

/** The best price of each leg for a taker, before and after the fee. */
export function Prices({ question }: { question: Heard }) {
  const { legs, buy, sell } = question
  const tops = legs.map(({ token: { orderbook } }) => ({ ask: orderbook?.asks[0]?.price, bid: orderbook?.bids[0]?.price }))
  const decimals = centDecimals(tops.flatMap(({ ask, bid }) => [ask ?? '', bid ?? '']))
  const units = [...new Set(legs.map(({ currency }) => currency))]
  const cells = (leg: Leg, price: string | undefined, best: typeof buy, sign: 1 | -1) => {
    const isBest = best?.leg.venue === leg.venue
    const net = afterFee(price, leg.takerFeeRate, sign)
    return (
      <>
        <td className="figure">{price ? plainCents(price, decimals) : '–'}</td>
        <td className="figure">{isBest && <span className="tag won">Best</span>} {net ? plainCents(net, 2) : '–'}</td>
      </>
    )
  }
  return (
    <section className="panel prices" aria-labelledby="prices">
      <h2 id="prices">Best prices <NotComparable question={question} /></h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Venue</th>
            <th scope="col" className="figure">Buy ¢</th>
            <th scope="col" className="figure">After fee</th>
            <th scope="col" className="figure">Sell ¢</th>
            <th scope="col" className="figure">After fee</th>
          </tr>
        </thead>
        <tbody>
          {legs.map((leg, i) => (
            <tr key={leg.venue} data-venue={leg.venue}>
              <th scope="row">
                {leg.market ? <a href={tokenPath(leg.market.marketId, leg.token.tokenId)}>{leg.venue}</a> : leg.venue}
                <span className="detail">{leg.currency && `In ${leg.currency}, `}{leg.takerFeeRate ? `fee rate ${leg.takerFeeRate}` : 'fee not known'}</span>
              </th>
              {cells(leg, tops[i]!.ask, buy, 1)}
              {cells(leg, tops[i]!.bid, sell, -1)}
            </tr>
          ))}
        </tbody>
      </table>
      <p className="detail">
        {units.length > 1 && 'Each venue has its own currency: nothing is converted. '}
        The fee is rate × price × (1 − price) per share, as the operator states, before rounding.
      </p>
    </section>
  )
}

/** The books of the legs side by side. */
export function LegBooks({ question }: { question: Heard }) {
  return (
    <section className="panel books" aria-labelledby="books">
      <h2 id="books">Order books <NotComparable question={question} /></h2>
      <div>
        {question.legs.map(({ venue, token: { orderbook } }) => {
          const heard = orderbook ? { freshness: orderbook.freshness, session: question.session, ended: question.ended } : undefined
          return (
            <section key={venue} className="book" aria-label={venue}>
              <h3><span className="tag venue">{venue}</span> {orderbook && <Freshness heard={heard} />}</h3>
              {orderbook ? <Ladder bids={summed(orderbook.bids)} asks={summed(orderbook.asks)} midpoint={orderbook.midpoint} spread={orderbook.spread} /> : <p className="ended">There is no book now.</p>}
            </section>
          )
        })}
      </div>
    </section>
  )
}
