// examples/recipes/user-express.mjs
import express from 'express'
import session from 'express-session'
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import passport from 'passport'
import { Strategy } from 'passport-local'

const users = [
  { id: 1, name: 'ada', password: 'lovelace', role: 'editor' },
  { id: 2, name: 'bob', password: 'builder', role: 'reader' },
]
passport.use(
  new Strategy((name, password, done) => {
    done(null, users.find((user) => user.name === name && user.password === password) ?? false) // hash yours
  }),
)
passport.serializeUser((user, done) => done(null, /** @type {any} */ (user).id))
passport.deserializeUser((id, done) => done(null, users.find((user) => user.id === id) ?? false))

/** @param {any} request the request of Express, with what Passport has found */
const findUser = ({ user }) => user && { id: String(user.id), claims: { role: user.role } }

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  auth: {
    principal: ({ hostContext }) => findUser(hostContext),
    challenge: 'Session realm="app"', // a 401 must have one (RFC 9110)
    requireAuth: 'all',
    authorize: (principal, request) => request.method === 'GET' || principal?.claims?.role === 'editor',
  },
})

const app = express()
app.use(session({ secret: 'change me', resave: false, saveUninitialized: false }))
app.use(passport.session())
app.post('/login', express.urlencoded(), passport.authenticate('local'), (_req, res) => res.sendStatus(204))
app.use('/api', service) // behind the session
app.listen(8080)
