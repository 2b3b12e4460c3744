// Which of a list's rows can be seen.
import { useCallback, useEffect, useRef, useState } from 'react'

/** The time in milliseconds after the last change of the visible rows until useVisible returns the new rows. */
const settle = 150

type Observe = (element: Element | null) => (() => void) | undefined

/** Returns the ids of the rows in view or near it, and a function that returns the ref for the element of a row. */
export function useVisible(): [ids: string[], observe: (id: string) => Observe] {
  const [ids, setIds] = useState<string[]>([])
  const seen = useRef(new Set<string>())
  const rows = useRef(new WeakMap<Element, string>())
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const observer = useRef<IntersectionObserver>(undefined)
  const refs = useRef(new Map<string, Observe>())

  const publish = useCallback((after: number) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setIds(before => {
      const now = [...seen.current].sort()
      return now.join() === before.join() ? before : now
    }), after)
  }, [])
  observer.current ??= new IntersectionObserver(entries => {
    const first = seen.current.size === 0
    for (const { target, isIntersecting } of entries) {
      const id = rows.current.get(target)
      if (id === undefined) continue
      if (isIntersecting) seen.current.add(id)
      else seen.current.delete(id)
    }
    publish(first ? 0 : settle)
  }, { rootMargin: '100px 0px' })
  useEffect(() => () => clearTimeout(timer.current), [])

  const observe = useCallback((id: string) => {
    // Each id keeps its ref, because React would detach the row and observe the row again for a new ref.
    let ref = refs.current.get(id)
    if (!ref) {
      ref = element => {
        if (!element) return undefined
        rows.current.set(element, id)
        observer.current!.observe(element)
        return () => {
          observer.current!.unobserve(element)
          seen.current.delete(id)
          publish(settle)
        }
      }
      refs.current.set(id, ref)
    }
    return ref
  }, [publish])
  return [ids, observe]
}
