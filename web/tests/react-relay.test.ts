// examples/react-relay in a browser.
import { checkApp } from './example'

checkApp('react-relay')
