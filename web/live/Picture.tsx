// The venue's picture of an event or a market.
import { useState } from 'react'

/** A picture beside a title; nothing if the venue has none with an address of its own. The host of the picture does not learn which page shows it. */
export function Picture({ url }: { url: string | null | undefined }) {
  const [broken, setBroken] = useState(false)
  if (!url || !/^(https:|data:image\/)/.test(url)) return null
  return broken
    ? <span className="picture" />
    : <img className="picture" src={url} alt="" width={40} height={40} loading="lazy" referrerPolicy="no-referrer" onError={() => setBroken(true)} />
}
