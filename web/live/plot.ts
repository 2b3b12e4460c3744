// A chart of the library Lightweight Charts in the colours of the page.
import { useEffect, useRef, useState, type RefObject } from 'react'
import { createChart, type IChartApi, type ISeriesApi, type SeriesType } from 'lightweight-charts'
import { cents } from './format'

export interface Plot {
  chart: IChartApi
  colour: (name: string) => string
  /** Keeps the labels of the axis away from the label for the last price of a series. */
  tag: (series: ISeriesApi<SeriesType>) => void
  /** Removes series. Does nothing if the whole chart was removed before. */
  remove: (series: readonly ISeriesApi<SeriesType>[]) => void
}

/**
 * Returns a ref for the chart's element, and the chart once it exists. A change of the colour scheme makes a new chart. write writes the
 * prices.
 */
export function usePlot(write = cents): [element: RefObject<HTMLDivElement | null>, plot: Plot | undefined] {
  const element = useRef<HTMLDivElement>(null)
  const [plot, setPlot] = useState<Plot>()
  const dark = useDark()
  useEffect(() => {
    const styles = getComputedStyle(element.current!)
    const colour = (name: string) => styles.getPropertyValue(`--${name}`).trim()
    const { clientWidth: width, clientHeight: height } = element.current!
    const tagged = new Set<ISeriesApi<SeriesType>>()
    const label = (price: number) => (isPrice(price) ? write(price) : '')
    const chart = createChart(element.current!, {
      width, height, autoSize: true, // a first size, because fitContent may run before autoSize has measured the element
      layout: { background: { color: 'transparent' }, textColor: colour('muted'), fontFamily: styles.fontFamily, attributionLogo: false },
      grid: { vertLines: { visible: false }, horzLines: { color: colour('line') } },
      rightPriceScale: { borderVisible: false, entireTextOnly: true, minimumWidth: hasRoom() ? axisWidth : 0, scaleMargins: { top: 0.08, bottom: 0.22 } },
      // All points stay in view when the width changes, and the first label is not cut off.
      timeScale: { borderVisible: false, timeVisible: true, fixLeftEdge: true, fixRightEdge: true, lockVisibleTimeRangeOnResize: true },
      handleScroll: { vertTouchDrag: false },
      localization: { priceFormatter: label, tickmarksPriceFormatter: (prices: number[]) => prices.map(price => (covered(tagged, price) ? '' : label(price))) },
    })
    let gone = false
    setPlot({
      chart, colour,
      tag: series => { if (hasRoom()) tagged.add(series) },
      remove: series => {
        for (const one of series) tagged.delete(one)
        if (!gone) series.forEach(one => chart.removeSeries(one))
      },
    })
    return () => {
      gone = true
      setPlot(undefined)
      chart.remove()
    }
  }, [dark, write])
  return [element, plot]
}

/** Whether a price can be one. The axis extends below 0 to make room for the volume; labels there are empty. */
const isPrice = (price: number) => price > -1e-9 && price < 1 + 1e-9

/** The least width of the axis, in pixels. A label with a second decimal fits, so that the chart keeps its size when one comes. */
const axisWidth = 64

/** The distance in pixels between the centres of two labels that do not touch. */
const apart = 18

/** Whether the label of the last price of a series covers the label of a price on the axis. */
const covered = (tagged: ReadonlySet<ISeriesApi<SeriesType>>, price: number) => [...tagged].some(series => {
  const last = series.lastValueData(true)
  const [tag, here] = last.noData ? [null, null] : [series.priceToCoordinate(last.price), series.priceToCoordinate(price)]
  return tag !== null && here !== null && Math.abs(tag - here) < apart
})

export const priceFormat = { type: 'custom', minMove: 0.0001, formatter: (price: number) => (isPrice(price) ? cents(price) : '') } as const

/**
 * Whether a label for the last price fits beside the axis. On a phone it would cover other labels, and the page already has the
 * price above the chart.
 */
export const hasRoom = () => innerWidth > 544

const darkness = matchMedia('(prefers-color-scheme: dark)')

/** Whether the page has the dark colour scheme. */
function useDark(): boolean {
  const [dark, setDark] = useState(darkness.matches)
  useEffect(() => {
    const changed = () => setDark(darkness.matches)
    darkness.addEventListener('change', changed)
    return () => darkness.removeEventListener('change', changed)
  }, [])
  return dark
}
