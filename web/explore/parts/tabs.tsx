// Replaces the tabs of @graphiql/react with a list of buttons that marks the current one. The original tabs nest buttons in buttons and
// need an animation library that is as large as the rest of React.
import { createContext, use, type ComponentProps, type ReactNode } from 'react'
import { CloseIcon, UnStyledButton } from '@graphiql/react'

const Active = createContext(false)

function TabRoot({ isActive, children }: { isActive: boolean; children: ReactNode }) {
  return (
    <li className={isActive ? 'graphiql-tab graphiql-tab-active' : 'graphiql-tab'}>
      <Active value={isActive}>{children}</Active>
    </li>
  )
}

function TabButton(props: ComponentProps<'button'>) {
  return <UnStyledButton {...props} type="button" aria-current={use(Active) || undefined} className="graphiql-tab-button" />
}

function TabClose(props: ComponentProps<'button'>) {
  return (
    <UnStyledButton {...props} type="button" aria-label="Close tab" className="graphiql-tab-close">
      <CloseIcon />
    </UnStyledButton>
  )
}

export const Tab = Object.assign(TabRoot, { Button: TabButton, Close: TabClose })

export function Tabs({ 'aria-label': label, children }: { 'aria-label': string; children: ReactNode }) {
  return (
    <ul aria-label={label} className="graphiql-tabs no-scrollbar">
      {children}
    </ul>
  )
}
