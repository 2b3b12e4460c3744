// Replaces react-style-singleton, which writes <style> elements that the page's Content-Security-Policy forbids. Instead, the
// document adopts a sheet with the dialog's styles while the dialog is open.
import { useEffect } from 'react'

export function styleSingleton() {
  const sheet = new CSSStyleSheet()
  let users = 0
  return function Sheet({ styles }: { styles: string }) {
    useEffect(() => {
      if (users++ === 0) {
        sheet.replaceSync(styles)
        document.adoptedStyleSheets.push(sheet)
      }
      return () => {
        if (--users === 0) document.adoptedStyleSheets = document.adoptedStyleSheets.filter(adopted => adopted !== sheet)
      }
    }, [styles])
    return null
  }
}
