// The line below the answer that says what it took: its cost, and where it came from.

/** What a response says about itself in its extensions. */
export function Figures({ extensions, asking, onAsk }: { extensions: unknown; asking: boolean; onAsk: (asking: boolean) => void }) {
  const found = Object.entries((extensions ?? {}) as Record<string, unknown>)
  return (
    <div className="figures">
      <label>
        <input type="checkbox" checked={asking} onChange={event => onAsk(event.target.checked)} /> Ask for cost and explain
      </label>
      {found.map(([name, value]) => (
        <Figure key={name} name={name} value={value} />
      ))}
    </div>
  )
}

/** A name in camel case as words. */
const words = (name: string) => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

function Figure({ name, value }: { name: string; value: unknown }) {
  const parts: [string, unknown][] = typeof value === 'object' && value !== null ? Object.entries(value) : [['', value]]
  if (parts.every(([, part]) => typeof part !== 'object')) {
    return (
      <span>
        {name}: {parts.map(([part, figure]) => `${figure} ${words(part)}`.trim()).join(', ')}
      </span>
    )
  }
  return (
    <details>
      <summary>{name}</summary>
      <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
    </details>
  )
}
