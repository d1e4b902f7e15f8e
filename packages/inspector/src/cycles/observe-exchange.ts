import { createHash, createHmac } from "node:crypto";
import { headerName } from "@coinslot/protocol";
import { recoverSigner } from "../checks/recover-signer.ts";
import { type PresentedPayment, readPayments } from "../decode/read-payment.ts";
import { createRedactor, type Redactor } from "../decode/redact.ts";
import { headerOf } from "../proxy/end-to-end-headers.ts";
import type { AnswerHead, ExchangeObserver, RequestHead } from "../proxy/observer.ts";
import { createBodyBuffer } from "./body-buffer.ts";
import { addAnswer, beginLeg, endLeg, judgeLeg } from "./build-leg.ts";
import type { Leg, OfferedWay, OnChain } from "./cycle.ts";
import type { EntryStore } from "./entry-store.ts";
import { authorizationOf, type Entry, findCycle } from "./find-cycle.ts";
import type { LookQueue } from "./look-queue.ts";

/** Looks at the transaction of a receipt. */
export type ReadChain = (transaction: string, network: string | undefined) => Promise<OnChain>;

/** Context of each exchange. */
export interface BoardContext {
  store: EntryStore;
  looks: LookQueue;
  maxBodyBytes: number;
  /** Of the labels of idempotency keys. */
  salt: Uint8Array;
  readChain: ReadChain | undefined;
  changed(entry: Entry): void;
  /** Counts an exchange without an offer or a payment. */
  pass(): void;
}

/** Legs that are kept of one cycle. */
const maxLegs = 32;

/** Follows one exchange. It joins a cycle with its payment, or begins one with its 402. */
export function observeExchange(context: BoardContext, head: RequestHead): ExchangeObserver {
  const secrets = new Set<string>();
  const redactor = createRedactor(secrets);
  redactor.learn(head.headers);
  const presented = readPayments(head.headers);
  for (const payment of presented) redactor.add(...payment.secrets);
  const request = createBodyBuffer(context.maxBodyBytes);
  const answer = createBodyBuffer(context.maxBodyBytes);
  const begin = () => beginInCycle(context, { head, presented, redactor, secrets });
  let answered: AnswerHead | undefined;
  let begun = presented.length > 0 ? begin() : undefined;
  return {
    requestChunk: request.add,
    answerChunk: answer.add,
    answer(answerHead) {
      answered = answerHead;
      redactor.learn(answerHead.headers);
      if (presented.length === 0 && answerHead.status === 402) begun = begin();
      if (begun?.leg === undefined) return;
      const { leg, entry } = begun;
      addAnswer(leg, answerHead, redactor);
      for (const { challenge } of leg.ways) {
        if (challenge !== undefined) entry.challenges.add(challenge.id);
      }
      context.changed(entry);
    },
    end(how, at) {
      if (begun === undefined) context.pass();
      if (begun?.leg === undefined) return;
      const { leg, entry } = begun;
      leg.end = how;
      leg.endedAt = at;
      endLeg(leg, { request, answer, head, answered }, redactor);
      judgeLeg(leg);
      context.store.weigh(entry, leg);
      context.changed(entry);
      lookAtChain(context, entry, leg);
    },
  };
}

interface Begun {
  entry: Entry;
  /** `undefined` where the cycle has no room for another one. */
  leg: Leg | undefined;
}

function beginInCycle(
  context: BoardContext,
  exchange: {
    head: RequestHead;
    presented: readonly PresentedPayment[];
    redactor: Redactor;
    secrets: Set<string>;
  },
): Begun {
  const { head, presented, redactor, secrets } = exchange;
  const { store, salt, changed } = context;
  const { connection, method, at: startedAt } = head;
  const route = createHash("sha256").update(`${method} ${head.target}`).digest("base64url");
  const given = headerOf(head.headers, headerName.idempotencyKey);
  const key = given && createHmac("sha256", salt).update(given).digest("hex").slice(0, 8);
  const [first] = presented;
  const found = first && findCycle(store.entries, { route, connection, key, presented: first });
  const target = redactor.target(head.target);
  const start = { method, target, startedAt, legs: [], droppedLegs: 0 };
  const marks = { authorizations: new Set<string>(), challenges: new Set<string>() };
  const entry =
    found ?? store.add({ start, route, connection, ...marks, keys: new Set(), secrets });
  for (const secret of entry.secrets) secrets.add(secret);
  for (const secret of secrets) entry.secrets.add(secret);
  const { cycle } = entry;
  if (cycle.legs.length >= maxLegs) {
    cycle.droppedLegs += 1;
    changed(entry);
    return { entry, leg: undefined };
  }
  const authorization = first && authorizationOf(first);
  const leg = beginLeg({
    number: cycle.legs.length + 1,
    head,
    presented,
    offered: offersBefore(store, entry, first?.challenge?.id),
    isRepeated: authorization !== undefined && entry.authorizations.has(authorization),
    key: key === undefined ? undefined : `key ${key}`,
    redactor,
  });
  cycle.legs.push(leg);
  entry.connection = connection;
  if (authorization !== undefined) entry.authorizations.add(authorization);
  if (key !== undefined) entry.keys.add(key);
  changed(entry);
  if (first?.paid !== undefined) lookAtSigner(context, { entry, leg, presented: first });
  return { entry, leg };
}

/**
 * The latest offers of a cycle, or else of its route: a buyer may keep an offer. A challenge stays
 * open beside later ones.
 */
function offersBefore(
  { entries }: EntryStore,
  { cycle, route }: Entry,
  challengeId: string | undefined,
): readonly OfferedWay[] {
  const waysOf = (legs: readonly Leg[]) => legs.findLast(({ ways }) => ways.length > 0)?.ways;
  const others = () => entries.filter((entry) => entry.route === route);
  const latest = waysOf(cycle.legs) ?? waysOf(others().flatMap((entry) => entry.cycle.legs)) ?? [];
  if (challengeId === undefined) return latest;
  const answered = cycle.legs
    .flatMap(({ ways }) => ways)
    .filter(({ challenge }) => challenge?.id === challengeId);
  return [...new Set([...answered, ...latest])];
}

function lookAtSigner(
  { looks, changed }: BoardContext,
  look: { entry: Entry; leg: Leg; presented: PresentedPayment },
): void {
  const { entry, leg, presented } = look;
  looks.add(async () => {
    const { payment } = leg;
    if (payment === undefined) return;
    const ways = entry.cycle.legs.flatMap((each) => each.ways);
    const { comparisons, signedUnder } = await recoverSigner(presented, payment.way, ways);
    payment.comparisons.push(...comparisons);
    if (signedUnder !== undefined) payment.signedUnder = signedUnder;
    judgeLeg(leg);
    changed(entry);
  });
}

function lookAtChain(
  { looks, readChain, changed }: BoardContext,
  entry: Entry,
  { receipt }: Leg,
): void {
  const { transaction, network } = receipt ?? {};
  if (readChain === undefined || transaction === undefined) return;
  if (entry.cycle.chain?.transaction === transaction) return;
  looks.add(async () => {
    entry.cycle.chain = await readChain(transaction, network);
    changed(entry);
  });
}
