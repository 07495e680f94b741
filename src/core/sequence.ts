import type { Exchange } from './exchange.ts'
import { isPromise, type MaybePromise, type Step } from './handler.ts'
import type { Reply } from './reply.ts'

type Decision = MaybePromise<Reply | undefined>

/**
 * Makes one step of several: they run in order until one replies. Control only moves forward.
 *
 * The first of them are written out. A loop calls all steps from one place, of which the compiler then learns nothing;
 * from places of their own they are called directly, and the small ones not at all. The loop goes on where a promise
 * came back, or where somebody listens to the names of the steps.
 */
export function sequence<E extends Exchange>(steps: readonly Step<E>[]): Step<E> {
  // biome-ignore format: a list of numbers
  const [
    s0 = goOn, s1 = goOn, s2 = goOn, s3 = goOn, s4 = goOn, s5 = goOn, s6 = goOn, s7 = goOn,
    s8 = goOn, s9 = goOn, s10 = goOn, s11 = goOn, s12 = goOn, s13 = goOn, s14 = goOn,
    s15 = goOn, s16 = goOn, s17 = goOn, s18 = goOn, s19 = goOn, s20 = goOn, s21 = goOn,
  ] = steps

  function runFrom(exchange: E, from: number): Decision {
    for (let i = from; i < steps.length; i++) {
      const step = steps[i]!
      // Bundlers tell functions of one name apart by a number.
      exchange.trace?.push(step.name.replace(/\$?\d+$/, ''))
      const reply = step(exchange)
      if (reply !== undefined) return goOnAfter(exchange, reply, i)
    }
    return undefined
  }

  function goOnAfter(exchange: E, reply: Decision, step: number): Decision {
    if (!isPromise(reply) || step >= steps.length - 1) return reply
    return reply.then((reply) => reply ?? runFrom(exchange, step + 1))
  }

  return function run(exchange) {
    if (exchange.trace !== undefined) return runFrom(exchange, 0)
    let reply: Decision
    if ((reply = s0(exchange)) !== undefined) return goOnAfter(exchange, reply, 0)
    if ((reply = s1(exchange)) !== undefined) return goOnAfter(exchange, reply, 1)
    if ((reply = s2(exchange)) !== undefined) return goOnAfter(exchange, reply, 2)
    if ((reply = s3(exchange)) !== undefined) return goOnAfter(exchange, reply, 3)
    if ((reply = s4(exchange)) !== undefined) return goOnAfter(exchange, reply, 4)
    if ((reply = s5(exchange)) !== undefined) return goOnAfter(exchange, reply, 5)
    if ((reply = s6(exchange)) !== undefined) return goOnAfter(exchange, reply, 6)
    if ((reply = s7(exchange)) !== undefined) return goOnAfter(exchange, reply, 7)
    if ((reply = s8(exchange)) !== undefined) return goOnAfter(exchange, reply, 8)
    if ((reply = s9(exchange)) !== undefined) return goOnAfter(exchange, reply, 9)
    if ((reply = s10(exchange)) !== undefined) return goOnAfter(exchange, reply, 10)
    if ((reply = s11(exchange)) !== undefined) return goOnAfter(exchange, reply, 11)
    if ((reply = s12(exchange)) !== undefined) return goOnAfter(exchange, reply, 12)
    if ((reply = s13(exchange)) !== undefined) return goOnAfter(exchange, reply, 13)
    if ((reply = s14(exchange)) !== undefined) return goOnAfter(exchange, reply, 14)
    if ((reply = s15(exchange)) !== undefined) return goOnAfter(exchange, reply, 15)
    if ((reply = s16(exchange)) !== undefined) return goOnAfter(exchange, reply, 16)
    if ((reply = s17(exchange)) !== undefined) return goOnAfter(exchange, reply, 17)
    if ((reply = s18(exchange)) !== undefined) return goOnAfter(exchange, reply, 18)
    if ((reply = s19(exchange)) !== undefined) return goOnAfter(exchange, reply, 19)
    if ((reply = s20(exchange)) !== undefined) return goOnAfter(exchange, reply, 20)
    if ((reply = s21(exchange)) !== undefined) return goOnAfter(exchange, reply, 21)
    return runFrom(exchange, 22)
  }
}

function goOn(): undefined {
  return undefined
}
