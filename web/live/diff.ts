// The words in which two texts differ.

/** A part of a text, and whether the other text lacks it. */
export interface Part {
  text: string
  own: boolean
}

/** The greatest number of pairs of words that are compared. In longer texts, all words between the first and the last difference count. */
const most = 4_000_000

/** Compares two texts word by word. The parts of each text together are the whole text. White space makes no difference. */
export function differences(a: string, b: string): [Part[], Part[]] {
  const [x, y] = [words(a), words(b)]
  const same = (i: number, j: number) => x[i] !== undefined && x[i]?.trim() === y[j]?.trim()
  let start = 0
  while (same(start, start)) start++
  let [endX, endY] = [x.length, y.length]
  while (endX > start && endY > start && same(endX - 1, endY - 1)) [endX, endY] = [endX - 1, endY - 1]
  const [ownX, ownY] = [x.map((_, i) => i >= start && i < endX), y.map((_, j) => j >= start && j < endY)]
  const [rows, columns] = [endX - start + 1, endY - start + 1]
  if (rows * columns <= most) {
    // The length of the longest common subsequence of the words from i and from j on.
    const longest = new Uint16Array(rows * columns)
    const at = (i: number, j: number) => (i - start) * columns + j - start
    for (let i = endX - 1; i >= start; i--) {
      for (let j = endY - 1; j >= start; j--) longest[at(i, j)] = same(i, j) ? longest[at(i + 1, j + 1)]! + 1 : Math.max(longest[at(i + 1, j)]!, longest[at(i, j + 1)]!)
    }
    for (let i = start, j = start; i < endX && j < endY;) {
      if (same(i, j)) ownX[i++] = ownY[j++] = false
      else if (longest[at(i + 1, j)]! >= longest[at(i, j + 1)]!) i++
      else j++
    }
  }
  return [joined(x, ownX), joined(y, ownY)]
}

/** The words of a text, each with the white space after it. */
const words = (text: string) => text.split(/(?<=\s)(?=\S)/)

function joined(words: string[], own: boolean[]): Part[] {
  const parts: Part[] = []
  words.forEach((text, i) => {
    const last = parts.at(-1)
    if (last && last.own === own[i]) last.text += text
    else parts.push({ text, own: own[i]! })
  })
  return parts
}
