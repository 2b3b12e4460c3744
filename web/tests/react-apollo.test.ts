// examples/react-apollo in a browser.
import { checkApp } from './example'

checkApp('react-apollo')
