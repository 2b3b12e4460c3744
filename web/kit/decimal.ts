// Decimals of the graph. They are strings, because a floating-point number would change some prices.

declare const decimalBrand: unique symbol

/** The text of a decimal number, such as "0.65". Map the scalar Decimal to this type, so that TypeScript refuses arithmetic on it. */
export type Decimal = string & { readonly [decimalBrand]: true }

const form = /^-?(0|[1-9]\d*)(\.\d+)?$/

/** Reports whether a text is a decimal number as the graph writes it: digits without an exponent. */
export const isDecimal = (text: string): text is Decimal => form.test(text)

/** Returns a text as a Decimal. It throws a RangeError if the text is not one. */
export function decimal(text: string): Decimal {
  if (!isDecimal(text)) throw new RangeError(`${JSON.stringify(text)} is not a decimal number such as "0.65"`)
  return text
}

/** Compares the exact values: returns a negative number if a is less than b, and 0 if they are equal, such as "0.5" and "0.50". */
export function compareDecimals(a: string, b: string): number {
  const [x, y] = [scaled(decimal(a)), scaled(decimal(b))]
  const places = Math.max(x.places, y.places)
  const difference = x.digits * 10n ** BigInt(places - x.places) - y.digits * 10n ** BigInt(places - y.places)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

function scaled(text: Decimal): { digits: bigint; places: number } {
  const [whole = '0', fraction = ''] = text.split('.')
  return { digits: BigInt(whole + fraction), places: fraction.length }
}

/** Formats a decimal for people, without a loss of digits. The options are those of Intl.NumberFormat. */
export function formatDecimal(value: string, locale?: string | string[], options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: 20, ...options }).format(decimal(value) as `${number}`)
}
