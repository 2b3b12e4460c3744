// Subscribes to the prices of all alerts, whatever page is open, and shows a notice when a price reaches the price of an alert.
import { useEffect, useState } from 'react'
import { isReached, remove, useAlerts, type Alert } from './alertList'
import { exactCents } from './format'
import { usePrices } from './prices'
import { setUnread, tokenPath } from './route'

export function Alerts() {
  const alerts = useAlerts()
  const [reached, setReached] = useState<readonly (Alert & { price: string })[]>([])
  const { quotes } = usePrices([...new Set(alerts.map(({ tokenId }) => tokenId))].sort())
  useEffect(() => {
    const now = alerts.flatMap(alert => {
      const quote = quotes[alert.tokenId]
      return quote && isReached(alert, Number(quote.price)) ? [{ ...alert, price: quote.price }] : []
    })
    if (now.length === 0) return
    now.forEach(remove)
    setReached(before => [...now, ...before].slice(0, 5))
  }, [alerts, quotes])
  useEffect(() => setUnread(reached.length), [reached])
  return (
    <div className="notices" role="status">
      {reached.map((alert, i) => (
        <p key={`${alert.tokenId} ${alert.at}`}>
          <a href={tokenPath(alert.marketId, alert.tokenId)}>{alert.name}</a> is at <strong>{exactCents(alert.price)}</strong>, {alert.above ? 'above' : 'below'} {exactCents(alert.at)}.
          <button type="button" aria-label="Dismiss" onClick={() => setReached(reached.filter((_, other) => other !== i))}>×</button>
        </p>
      ))}
    </div>
  )
}
