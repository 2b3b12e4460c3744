// The leading outcomes of an event in one chart, continued by their live prices.
import { useEffect, useMemo, useState } from 'react'
import { useQuery } from 'urql'
import { LineSeries, type ISeriesApi } from 'lightweight-charts'
import { CompareDocument } from './__generated__/operations'
import { bars, resolution, stepOf, still, type Bar } from './bars'
import { cents, reason } from './format'
import { useAgain } from './live'
import { hasRoom, priceFormat, usePlot } from './plot'
import type { Quotes } from './prices'
import { Source } from './Source'

/** The maximum number of lines. Each line needs the history of one token. */
const most = 4

export default function Compare({ outcomes, quotes }: { outcomes: { tokenId: string; name: string }[]; quotes: Quotes }) {
  // The chart keeps the outcomes that led when the page was opened, even if other outcomes lead later.
  const [lines] = useState(() => outcomes.slice(0, most))
  const variables = { tokenIds: lines.map(({ tokenId }) => tokenId), from: null }
  const [{ data, error }, ask] = useQuery({ query: CompareDocument, variables })
  useAgain(error, ask)
  const [element, plot] = usePlot()
  const step = useMemo(() => resolution(data?.tokens?.[0]?.history?.points ?? [], 600), [data])
  const [series, setSeries] = useState<readonly ISeriesApi<'Line'>[]>([])
  useEffect(() => {
    if (!plot || !data?.tokens) return
    const drawn = data.tokens.map((token, i) => {
      const line = plot.chart.addSeries(LineSeries, { color: plot.colour(`series-${i + 1}`), lineWidth: 2, priceFormat, priceLineVisible: false, lastValueVisible: hasRoom() })
      plot.tag(line)
      line.setData(bars(token?.history?.points ?? [], stepOf(Date.now(), step), step))
      return line
    })
    plot.chart.timeScale().fitContent()
    setSeries(drawn)
    return () => {
      setSeries([])
      plot.remove(drawn)
    }
  }, [plot, data, step])
  const newest = lines.map(({ tokenId }) => quotes[tokenId]?.heard.at(-1))
  useEffect(() => {
    series.forEach((line, i) => {
      const last = line.data().at(-1) as Bar | undefined
      const now = newest[i]
      if (!last || !now) return
      const time = Math.max(stepOf(now.time, step), last.time) as Bar['time']
      for (const bar of still(last, time, step)) line.update(bar)
      line.update({ time, value: now.price })
    })
  }, [series, step, ...Array.from({ length: most }, (_, i) => newest[i])])
  const last = (i: number) => quotes[lines[i]!.tokenId]?.price ?? data?.tokens?.[i]?.history?.points.at(-1)?.price
  return (
    <section className="panel chart" aria-labelledby="compare">
      <h2 id="compare">Leading outcomes, last 7 days <Source of="Leading outcomes" document={CompareDocument} variables={variables} /></h2>
      {error && <p role="alert">The history could not be read: {reason(error)}</p>}
      <ul className="legend">
        {lines.map(({ tokenId, name }, i) => <li key={tokenId} className={`series-${i + 1}`}>{name} {last(i) && <strong className="figure">{cents(last(i)!)}</strong>}</li>)}
      </ul>
      <div ref={element} className="canvas" role="img" aria-label={data ? lines.map(({ name }, i) => `${name} ${last(i) ? cents(last(i)!) : 'unknown'}`).join(', ') : 'The history is being read.'} />
      <p className="credit">Chart: <a href="https://www.tradingview.com/lightweight-charts/">TradingView Lightweight Charts</a></p>
    </section>
  )
}
