// Realised profit over time, from the records of a wallet.

export interface Entry {
  id: string
  kind: string
  side?: string | null
  tokenId?: string | null
  amount?: string | null
  price?: string | null
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
  /** The number of records that are left out because their money or their cost is unknown. */
  unknown: number
}

interface Holding { size: number; cost: number }

/** Returns 1 if the wallet gets the money of a record, -1 if it pays the money, and 0 if the kind and the side do not say. */
export function direction({ kind, side }: Pick<Entry, 'kind' | 'side'>): 1 | -1 | 0 {
  switch (kind) {
    case 'TRADE': return side === 'BUY' ? -1 : side === 'SELL' ? 1 : 0
    case 'FEE': case 'SPLIT': case 'WITHDRAWAL': return -1
    case 'REDEEM': case 'REWARD': case 'MERGE': case 'DEPOSIT': return 1
    default: return 0
  }
}

/** Returns the money of a record, or undefined if it is not known. The result has no sign, because not every venue sends one. */
function moneyOf({ kind, amount, price, size }: Entry): number | undefined {
  if (amount != null) return Math.abs(Number(amount))
  const priced = kind === 'TRADE' || kind === 'REDEEM' // the price of a fee would be that of its trade
  return priced && price != null && size != null ? Number(price) * Number(size) : undefined
}

/**
 * Returns the profit of sales, redemptions, fees and rewards as steps, oldest first. The cost of sold shares is their average price
 * in the records of purchases. Without such records, it is the average price of the wallet's position in the token.
 */
export function realised(records: readonly Entry[], averages: ReadonlyMap<string, number>): Profit {
  const held = new Map<string, Holding>()
  const steps: Step[] = []
  let profit = 0
  let unknown = 0
  for (const record of records.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp))) {
    const { kind, side, tokenId, size, timestamp } = record
    const [money, shares] = [moneyOf(record), Number(size ?? 0)]
    const holding = held.get(tokenId ?? '') ?? { size: 0, cost: 0 }
    if (kind === 'TRADE' && side === 'BUY') {
      if (money === undefined) unknown++
      else held.set(tokenId ?? '', { size: holding.size + shares, cost: holding.cost + money })
      continue
    }
    let cost: number | undefined = 0
    if ((kind === 'TRADE' && side === 'SELL') || kind === 'REDEEM') {
      const average = holding.size > 0 ? holding.cost / holding.size : averages.get(tokenId ?? '')
      const left = Math.max(0, holding.size - shares)
      if (average !== undefined) held.set(tokenId ?? '', { size: left, cost: left * average })
      cost = average === undefined ? undefined : average * shares
    } else if (kind !== 'FEE' && kind !== 'REWARD') continue
    if (money === undefined || cost === undefined) {
      unknown++
      continue
    }
    profit += direction(record) * money - cost
    steps.push({ time: Date.parse(timestamp), profit })
  }
  return { steps, unknown }
}
