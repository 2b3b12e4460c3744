// Realised profit over time, from the records of a wallet.

export interface Entry {
  id: string
  kind: string
  side?: string | null
  tokenId?: string | null
  amount?: string | null
  size?: string | null
  timestamp: string
}

export interface Step {
  time: number
  /** The sum of the profits of all records up to this step. */
  profit: number
}

export interface Profit {
  steps: Step[]
  /** The number of sales and redemptions that are left out because their cost is unknown. */
  unknown: number
}

interface Holding { size: number; cost: number }

/**
 * Returns the profit of sales, redemptions, fees and rewards as steps, oldest first. The cost of sold shares is their average price
 * in the records of purchases. Without such records, it is the average price of the wallet's position in the token.
 */
export function realised(records: readonly Entry[], averages: ReadonlyMap<string, number>): Profit {
  const held = new Map<string, Holding>()
  const steps: Step[] = []
  let profit = 0
  let unknown = 0
  for (const { kind, side, tokenId, amount, size, timestamp } of records.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp))) {
    const [money, shares] = [Number(amount ?? 0), Number(size ?? 0)]
    const holding = held.get(tokenId ?? '') ?? { size: 0, cost: 0 }
    if (kind === 'TRADE' && side === 'BUY') {
      held.set(tokenId ?? '', { size: holding.size + shares, cost: holding.cost - money })
      continue
    }
    if (kind === 'FEE' || kind === 'REWARD') profit += money
    else if ((kind === 'TRADE' && side === 'SELL') || kind === 'REDEEM') {
      const average = holding.size > 0 ? holding.cost / holding.size : averages.get(tokenId ?? '')
      if (average === undefined) {
        unknown++
        continue
      }
      const left = Math.max(0, holding.size - shares)
      held.set(tokenId ?? '', { size: left, cost: left * average })
      profit += money - average * shares
    } else continue
    steps.push({ time: Date.parse(timestamp), profit })
  }
  return { steps, unknown }
}
