// The names of markets and of their outcomes in lists.
interface Named { question?: string | null; groupItemTitle?: string | null; marketId: string; tokens: readonly { outcomeKind?: string | null }[] }
interface Outcome { outcome?: string | null; outcomeKind?: string | null }

/** The label of a market within its event, unless the question contains it. Without it, several markets have the same question. */
export const labelOf = ({ question, groupItemTitle }: Pick<Named, 'question' | 'groupItemTitle'>) =>
  groupItemTitle && !question?.toLowerCase().includes(groupItemTitle.toLowerCase()) ? groupItemTitle : undefined

/** What a price of a market is for: the market's label if the outcome is YES, otherwise the outcome. */
export const outcomeOf = ({ groupItemTitle }: Pick<Named, 'groupItemTitle'>, token: Outcome | undefined) =>
  token?.outcomeKind === 'YES' ? groupItemTitle ?? token.outcome : token?.outcome

/** The name of an outcome in a list of its event's outcomes. siblings is the number of the event's markets. */
export function nameOf(market: Named, outcome: string | null | undefined, siblings: number): string {
  const { groupItemTitle, question, marketId, tokens } = market
  if (tokens.some(({ outcomeKind }) => outcomeKind === 'YES')) return groupItemTitle ?? (siblings > 1 ? question ?? marketId : outcome ?? 'Yes')
  return groupItemTitle ? `${groupItemTitle}: ${outcome}` : outcome ?? ''
}

const questions = new Map<string, string>()
const titles = new Map<string, string>()

interface Remembered extends Pick<Named, 'marketId' | 'question'> { event?: { eventId: string; title?: string | null } | null }

/** Remembers the questions and events of the markets of a list for questionOf and titleOf. */
export function remember(markets: readonly Remembered[]) {
  for (const { marketId, question, event } of markets) {
    if (question) questions.set(marketId, question)
    if (event?.title) titles.set(event.eventId, event.title)
  }
}

/** The question of a market that a list has shown. The page of the market shows it until the market is read. */
export const questionOf = (marketId: string) => questions.get(marketId)

/** The same for the title of an event. */
export const titleOf = (eventId: string) => titles.get(eventId)

/** The class that colours an outcome. The word of the outcome always stands beside the colour. */
export const colourOf = (kind: string | null | undefined) => (kind === 'YES' ? 'yes' : kind === 'NO' ? 'no' : '')
