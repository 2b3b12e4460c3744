// Several tokens in one chart, continued by their live prices: the leading outcomes of an event, or the legs of a question.
import { useEffect, useMemo, useState } from 'react'
import { useQuery } from 'urql'
import { HistogramSeries, LineSeries, type ISeriesApi } from 'lightweight-charts'
import { CompareDocument } from './__generated__/operations'
import { bars, distances, resolution, stepOf, still, type Bar } from './bars'
import { cents, reason } from './format'
import { useAgain } from './live'
import { hasRoom, priceFormat, usePlot } from './plot'
import type { Quotes } from './prices'
import { Source } from './Source'

/** The maximum number of lines. Each line needs the history of one token. */
const most = 4

interface Props {
  title: string
  outcomes: { tokenId: string; name: string }[]
  quotes: Quotes
  /** Whether the chart also shows the distance of the highest line from the lowest. */
  apart?: boolean
}

export default function Compare({ title, outcomes, quotes, apart = false }: Props) {
  // The chart keeps the outcomes that led when the page was opened, even if other outcomes lead later.
  const [lines] = useState(() => outcomes.slice(0, most))
  const variables = { tokenIds: lines.map(({ tokenId }) => tokenId), from: null }
  const [{ data, error }, ask] = useQuery({ query: CompareDocument, variables })
  useAgain(error, ask)
  const [element, plot] = usePlot()
  const step = useMemo(() => Math.max(...(data?.tokens ?? []).map(token => resolution(token?.history?.points ?? [], 600))), [data])
  const [series, setSeries] = useState<readonly ISeriesApi<'Line'>[]>([])
  const [distance, setDistance] = useState<ISeriesApi<'Histogram'>>()
  useEffect(() => {
    if (!plot || !data?.tokens) return
    const drawn = data.tokens.map((token, i) => {
      const line = plot.chart.addSeries(LineSeries, { color: plot.colour(`series-${i + 1}`), lineWidth: 2, priceFormat, priceLineVisible: false, lastValueVisible: hasRoom() })
      plot.tag(line)
      line.setData(bars(token?.history?.points ?? [], stepOf(Date.now(), step), step))
      return line
    })
    const below = plot.chart.addSeries(HistogramSeries, { color: plot.colour('edge'), priceScaleId: 'apart', priceFormat, priceLineVisible: false, lastValueVisible: false, visible: apart })
    plot.chart.priceScale('apart').applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } })
    below.setData(distances(drawn.map(line => line.data() as Bar[])))
    plot.chart.timeScale().fitContent()
    setSeries(drawn)
    setDistance(below)
    return () => {
      setSeries([])
      setDistance(undefined)
      plot.remove([...drawn, below])
    }
  }, [plot, data, step, apart])
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
    const ends = series.flatMap(line => (line.data().at(-1) as Bar | undefined) ?? [])
    const time = Math.max(...ends.map(({ time }) => time)) as Bar['time']
    if (ends.length > 0 && ends.length === series.length) distance?.update(distances(ends.map(({ value }) => [{ time, value }]))[0]!)
  }, [series, distance, step, ...Array.from({ length: most }, (_, i) => newest[i])])
  const last = (i: number) => quotes[lines[i]!.tokenId]?.price ?? data?.tokens?.[i]?.history?.points.at(-1)?.price
  const known = lines.flatMap((_, i) => last(i) ?? []).map(Number)
  const far = apart && known.length === lines.length ? `${cents(Math.max(...known) - Math.min(...known))}` : ''
  return (
    <section className="panel chart" aria-labelledby="compare">
      <h2 id="compare">{title}, last 7 days <Source of={title} document={CompareDocument} variables={variables} /></h2>
      {error && <p role="alert">The history could not be read: {reason(error)}</p>}
      <ul className="legend">
        {lines.map(({ tokenId, name }, i) => <li key={tokenId} className={`series-${i + 1}`}>{name} {last(i) && <strong className="figure">{cents(last(i)!)}</strong>}</li>)}
        {apart && <li className="series-apart">Apart <strong className="figure">{far}</strong></li>}
      </ul>
      <div ref={element} className="canvas" role="img" aria-label={data ? lines.map(({ name }, i) => `${name} ${last(i) ? cents(last(i)!) : 'unknown'}`).concat(far ? `apart ${far}` : []).join(', ') : 'The history is being read.'} />
      <p className="credit">Chart: <a href="https://www.tradingview.com/lightweight-charts/">TradingView Lightweight Charts</a></p>
    </section>
  )
}
