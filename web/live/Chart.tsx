// The price of the last week, and on from there as it moves.
import { useEffect, useRef, useState } from 'react'
import { useQuery } from 'urql'
import { AreaSeries, createChart, type IChartApi, type ISeriesApi, type UTCTimestamp } from 'lightweight-charts'
import { HistoryDocument } from './__generated__/operations'
import { bars, stepOf, still, type Bar } from './bars'
import { percent, reason } from './format'
import { useAgain } from './live'
import type { Quote } from './prices'

export function Chart({ tokenId, quote }: { tokenId: string; quote: Quote | undefined }) {
  // The page's only read of history: what comes later is brought by the live price.
  const [{ data, error }, ask] = useQuery({ query: HistoryDocument, variables: { tokenId }, requestPolicy: 'cache-and-network' })
  useAgain(error, ask)
  const points = data?.token?.history?.points
  const element = useRef<HTMLDivElement>(null)
  const [plot, setPlot] = useState<{ chart: IChartApi; series: ISeriesApi<'Area'> }>()
  const dark = useDark()

  useEffect(() => {
    const styles = getComputedStyle(element.current!)
    const colour = (name: string) => styles.getPropertyValue(`--${name}`).trim()
    const { clientWidth: width, clientHeight: height } = element.current!
    const chart = createChart(element.current!, {
      width, height, autoSize: true, // points that are known already are fitted into the first size
      layout: { background: { color: 'transparent' }, textColor: colour('muted'), fontFamily: styles.fontFamily, attributionLogo: false },
      grid: { vertLines: { visible: false }, horzLines: { color: colour('line') } },
      rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.08, bottom: 0.08 } },
      // All seven days fit on a phone, and the first of their names is not cut off.
      timeScale: { borderVisible: false, timeVisible: true, fixLeftEdge: true, fixRightEdge: true },
      handleScroll: { vertTouchDrag: false },
      localization: { priceFormatter: (price: number) => percent(String(price)) },
    })
    const series = chart.addSeries(AreaSeries, {
      lineWidth: 2, lineColor: colour('accent'), topColor: colour('accent-veil'), bottomColor: colour('accent-none'),
      priceFormat: { type: 'custom', minMove: 0.0001, formatter: (price: number) => percent(String(price)) },
    })
    setPlot({ chart, series })
    return () => {
      setPlot(undefined)
      chart.remove()
    }
  }, [dark])

  useEffect(() => {
    if (!plot || !points) return
    // Up to now, so that all that is drawn is what the axis is fitted to, whenever the live price comes.
    plot.series.setData(bars(points, stepOf(Date.now())))
    plot.chart.timeScale().fitContent()
  }, [plot, points])

  useEffect(() => {
    const last = plot?.series.data().at(-1) as Bar | undefined
    const now = quote?.heard.at(-1)
    if (!plot || !last || !now) return
    const time = Math.max(stepOf(now.time), last.time) as UTCTimestamp
    for (const bar of still(last, time)) plot.series.update(bar)
    plot.series.update({ time, value: now.price })
  }, [plot, points, quote])

  return (
    <section className="panel chart" aria-labelledby="chart">
      <h2 id="chart">Price, last 7 days</h2>
      {error && <p role="alert">The history could not be read: {reason(error)}</p>}
      <div ref={element} className="canvas" role="img" aria-label={points ? summary(points.map(p => p.price), quote) : 'The history is being read.'} />
      <p className="credit">Chart: <a href="https://www.tradingview.com/lightweight-charts/">TradingView Lightweight Charts</a></p>
    </section>
  )
}

/** What the chart shows, in words. */
function summary(prices: string[], quote: Quote | undefined): string {
  const [first] = prices
  const last = quote?.price ?? prices.at(-1)
  if (first === undefined || last === undefined) return 'No price is known of the last 7 days.'
  const sorted = [...prices, last].sort((a, b) => Number(a) - Number(b))
  return `From ${percent(first)} 7 days ago to ${percent(last)} now; lowest ${percent(sorted[0]!)}, highest ${percent(sorted.at(-1)!)}.`
}

const darkness = matchMedia('(prefers-color-scheme: dark)')

/** Whether the page is dark, to draw with the right colours. */
function useDark(): boolean {
  const [dark, setDark] = useState(darkness.matches)
  useEffect(() => {
    const changed = () => setDark(darkness.matches)
    darkness.addEventListener('change', changed)
    return () => darkness.removeEventListener('change', changed)
  }, [])
  return dark
}
