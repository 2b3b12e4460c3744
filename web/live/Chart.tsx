// The price of a token over a range, as a line or as candles, continued by the live price.
import { useEffect, useMemo, useState } from 'react'
import { useQuery } from 'urql'
import { AreaSeries, CandlestickSeries, HistogramSeries, type CandlestickData, type ISeriesApi, type UTCTimestamp } from 'lightweight-charts'
import { CandlesDocument, HistoryDocument, type CandlesQuery } from './__generated__/operations'
import { bars, resolution, since, stepOf, still, volumes, type Bar } from './bars'
import { cents, exactCents, reason } from './format'
import { useAgain } from './live'
import { hasRoom, priceFormat, usePlot } from './plot'
import type { Quote } from './prices'
import { byLength, fromOf, lengthOf, ranges } from './ranges'
import { Source } from './Source'

export default function Chart({ tokenId, quote }: { tokenId: string; quote: Quote | undefined }) {
  const [range, setRange] = useState(ranges[0])
  const [asCandles, setAsCandles] = useState(false)
  const line = useMemo(() => ({ tokenId, from: fromOf(range) }), [tokenId, range])
  const candleVariables = { ...line, interval: range.interval }
  // The history of a range is read when the range is selected. The live price adds later points.
  const [{ data, error }, ask] = useQuery({ query: HistoryDocument, variables: line, requestPolicy: 'cache-and-network' })
  const [candles, askCandles] = useQuery({ query: CandlesDocument, variables: candleVariables, pause: !asCandles })
  useAgain(error, ask)
  useAgain(candles.error, askCandles)
  const all = data?.token?.history?.points
  const points = useMemo(() => all && (range.name === '1W' ? all : since(all, range.span, Date.now())), [all, range])
  const step = useMemo(() => resolution(points ?? [], range.step), [points, range])
  const [element, plot] = usePlot(exactCents)
  const [series, setSeries] = useState<ISeriesApi<'Area'>>()
  const [drawnCandles, setDrawnCandles] = useState<ISeriesApi<'Candlestick'>>()

  useEffect(() => {
    if (!plot || !points || asCandles) return
    const { chart, colour } = plot
    const area = chart.addSeries(AreaSeries, { lineWidth: 2, lineColor: colour('accent'), topColor: colour('accent-veil'), bottomColor: colour('accent-none'), priceFormat, lastValueVisible: hasRoom() })
    const volume = chart.addSeries(HistogramSeries, { color: colour('line'), priceScaleId: 'volume', priceLineVisible: false, lastValueVisible: false, priceFormat: { type: 'volume' } })
    plot.tag(area)
    chart.priceScale('volume').applyOptions({ scaleMargins: { top: 0.86, bottom: 0 } })
    // The bars end now, so that fitContent leaves room for the live price, which may arrive later.
    area.setData(bars(points, stepOf(Date.now(), step), step))
    volume.setData(volumes(points, step))
    chart.timeScale().fitContent()
    setSeries(area)
    return () => {
      setSeries(undefined)
      plot.remove([area, volume])
    }
  }, [plot, points, step, asCandles])

  const candleList = candles.data?.token?.candles
  useEffect(() => {
    if (!plot || !asCandles || !candleList) return
    const { chart, colour } = plot
    const drawn = chart.addSeries(CandlestickSeries, {
      upColor: colour('up'), downColor: colour('down'), wickUpColor: colour('up'), wickDownColor: colour('down'), borderVisible: false, priceFormat, lastValueVisible: hasRoom(),
    })
    plot.tag(drawn)
    const start = Date.now() - range.span * 1000
    drawn.setData(joined(candleList.filter(candle => Date.parse(candle.start) >= start || range.name === '1W')))
    chart.timeScale().fitContent()
    setDrawnCandles(drawn)
    return () => {
      setDrawnCandles(undefined)
      plot.remove([drawn])
    }
  }, [plot, asCandles, candleList, range])

  const now = quote?.heard.at(-1)
  useEffect(() => {
    const last = series?.data().at(-1) as Bar | undefined
    if (!series || !last || !now) return
    const time = Math.max(stepOf(now.time, step), last.time) as Bar['time']
    for (const bar of still(last, time, step)) series.update(bar)
    series.update({ time, value: now.price })
  }, [series, now, step])
  useEffect(() => {
    const last = drawnCandles?.data().at(-1) as CandlestickData<UTCTimestamp> | undefined
    if (!drawnCandles || !last || !now) return
    const length = 1000 * lengthOf[range.interval]
    const time = Math.max(stepOf(Math.floor(now.time / length) * length, 60), last.time) as UTCTimestamp // the server's candles are aligned to UTC
    const before = time === last.time ? last : { open: last.close, high: last.close, low: last.close }
    drawnCandles.update({ time, open: before.open, high: Math.max(before.high, now.price), low: Math.min(before.low, now.price), close: now.price })
  }, [drawnCandles, now, range])

  const problem = asCandles ? candles.error : error
  return (
    <section className="panel chart" aria-labelledby="chart">
      <h2 id="chart">
        Price, last {range.words}
        <Source of="Price history" document={asCandles ? CandlesDocument : HistoryDocument} variables={asCandles ? candleVariables : line} />
      </h2>
      <div className="chips" role="group" aria-label="Range">
        {byLength.map(r => <button key={r.name} type="button" aria-pressed={r === range} onClick={() => setRange(r)}>{r.name}</button>)}
        <button type="button" aria-pressed={asCandles} onClick={() => setAsCandles(!asCandles)}>Candles</button>
      </div>
      {problem && <p role="alert">The history could not be read: {reason(problem)}</p>}
      <div ref={element} className="canvas" role="img" aria-label={points ? summary(points.map(p => p.price), range.words, quote) : 'The history is being read.'} />
      <p className="credit">Chart: <a href="https://www.tradingview.com/lightweight-charts/">TradingView Lightweight Charts</a></p>
    </section>
  )
}

/** The candles as bars of the chart. Each begins at the price where the one before ended: a price is valid until the next one. */
function joined(candles: NonNullable<NonNullable<CandlesQuery['token']>['candles']>): CandlestickData<UTCTimestamp>[] {
  let before: number | undefined
  return candles.map(candle => {
    const close = Number(candle.close)
    const open = before ?? Number(candle.open)
    before = close
    return { time: stepOf(candle.start, 60), open, high: Math.max(open, Number(candle.high)), low: Math.min(open, Number(candle.low)), close }
  })
}

/** Describes the chart in words, for screen readers. */
function summary(prices: string[], words: string, quote: Quote | undefined): string {
  const [first] = prices
  const last = quote?.price ?? prices.at(-1)
  if (first === undefined || last === undefined) return `No price is known of the last ${words}.`
  const sorted = [...prices, last].sort((a, b) => Number(a) - Number(b))
  return `From ${cents(first)}, ${words} ago, to ${exactCents(last)} now; lowest ${cents(sorted[0]!)}, highest ${cents(sorted.at(-1)!)}.`
}
