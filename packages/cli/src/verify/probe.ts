import { headerName } from "@coinslot/protocol";
import type { Answer, Question } from "./ask-seller.ts";
import { askSeller, isDelivered } from "./ask-seller.ts";
import { type Plan, wayIn } from "./make-plan.ts";
import { type Offers, offeredWires, readOffers } from "./offers/read-offers.ts";
import type { ChainRecord } from "./open-chain.ts";
import type { Payer, SignedPayment } from "./open-payer.ts";
import type { Target } from "./read-target.ts";
import { NotCheckedError } from "./seller-error.ts";
import type { Way, WireName } from "./way.ts";

/** A payment that was sent once, and its answer. */
export interface Purchase {
  payment: SignedPayment;
  answer: Answer;
}

/** The tools of checks that pay nothing. */
export interface OfferProbe {
  target: Target;
  /** The first answer, and what it offers. */
  unpaid: { answer: Answer; offers: Offers };
  /** Sends the request to the URL's path or another. */
  ask: Asker;
}

/** The tools of the checks. */
export interface Probe extends OfferProbe {
  plan: Plan;
  payer: Payer;
  chain: ChainRecord;
  /** A fresh offer of a path, by one protocol. */
  draw(wire: WireName, path?: string): Promise<Way>;
  /** Sends the request with a payment, and notes whether it was served. */
  send(payment: SignedPayment, path?: string): Promise<Answer>;
  /** The one purchase by a protocol that checks share: the first of them makes it. */
  purchase(wire: WireName): Promise<Purchase>;
}

/** Changes of the request for one question. */
interface AskChanges {
  path?: string;
  method?: string;
  headers?: readonly (readonly [name: string, value: string])[];
}

/** Sends the request, with these changes, to the target's host. */
export type Asker = (changes?: AskChanges) => Promise<Answer>;

/** Asks the target, and only it. */
export function createAsker(
  target: Target,
  { timeoutMs, signal }: Pick<Question, "timeoutMs" | "signal">,
): Asker {
  const { url, request, path: ownPath } = target;
  const own = new Set(request.headers.map(([name]) => name.toLowerCase()));
  const standing = [
    ["accept", "*/*"],
    ["user-agent", "coinslot-verify"],
  ] as const;
  const missing = standing.filter(([name]) => !own.has(name));
  return ({ path = ownPath, method = request.method, headers = [] } = {}) => {
    // A payment by Authorization takes the place of the person's own header, as buyers have it.
    const replaced = new Set(headers.map(([name]) => name.toLowerCase()));
    const kept = request.headers.filter(([name]) => !replaced.has(name.toLowerCase()));
    const all = [...missing, ...kept, ...headers];
    const body = method === "HEAD" ? undefined : request.body;
    return askSeller({ url, method, path, headers: all, body, timeoutMs, signal });
  };
}

/** Joins the parts to a probe. */
export function createProbe(parts: OfferProbe & Pick<Probe, "plan" | "payer" | "chain">): Probe {
  const { target, plan, payer, ask } = parts;
  const purchases = new Map<WireName, Promise<Purchase>>();

  async function draw(wire: WireName, path = target.path): Promise<Way> {
    const { token } = plan;
    if (token === undefined) throw new NotCheckedError(plan.reason);
    const offers = readOffers(await ask({ path }));
    const way = wayIn(offers, wire, token);
    if (way !== undefined) return way;
    const isOffered = offeredWires(offers).includes(wire);
    throw new NotCheckedError(
      isOffered ? "no way of the planned token is offered" : "the route does not offer it",
    );
  }

  async function send(payment: SignedPayment, path = target.path): Promise<Answer> {
    const answer = await ask({ path, headers: payment.headers });
    if (isDelivered(answer)) payment.isServed = true;
    return answer;
  }

  async function buy(wire: WireName): Promise<Purchase> {
    const payment = await payer.pay(await draw(wire), target.path);
    return { payment, answer: await send(payment) };
  }

  return {
    ...parts,
    draw,
    send,
    purchase(wire) {
      const made = purchases.get(wire) ?? buy(wire);
      purchases.set(wire, made);
      return made;
    },
  };
}

/** The header in which a protocol brings its receipt. */
export const receiptHeader: Readonly<Record<WireName, string>> = {
  "x402 v1": headerName.paymentResponseV1,
  "x402 v2": headerName.paymentResponse,
  MPP: headerName.paymentReceipt,
};
