import type { PresentedPayment } from "../decode/read-payment.ts";
import type { Cycle } from "./cycle.ts";
import { stateOf } from "./state-of.ts";

/** A cycle, and the marks by which later requests are known to belong to it. */
export interface Entry {
  cycle: Cycle;
  /** Hash of method and target as sent, which the cycle shows without secrets. */
  route: string;
  /** The connection of its latest request. */
  connection: string;
  /** Payer and nonce of each authorization. */
  authorizations: Set<string>;
  challenges: Set<string>;
  keys: Set<string>;
  /** Texts that its recording leaves out. */
  secrets: Set<string>;
  bytes: number;
}

/** A paid request, by the same marks. */
export interface PaidRequest {
  route: string;
  connection: string;
  key: string | undefined;
  presented: PresentedPayment;
}

/** Identity of an authorization for joining: a nonce of 32 bytes is of one payer on one chain. */
export function authorizationOf({ paid }: PresentedPayment): string | undefined {
  if (paid === undefined) return undefined;
  return `${paid.authorization.from}/${paid.authorization.nonce}`.toLowerCase();
}

/**
 * Finds the cycle that a paid request goes on with. In this order:
 *
 * 1. the same authorization
 * 2. the challenge that it answers
 * 3. the same idempotency key on the route
 * 4. an open offer of the route on the same connection, then on any one
 *
 * Offers of x402 bear no mark: of several buyers of one route at once, on other connections for the
 * payment, the latest offer is taken. The offers are equal, and the times may be another buyer's.
 */
export function findCycle(entries: readonly Entry[], request: PaidRequest): Entry | undefined {
  const { route, connection, key, presented } = request;
  const authorization = authorizationOf(presented);
  const challenge = presented.challenge?.id;
  const latest = [...entries].reverse();
  const open = latest.filter((entry) => entry.route === route && awaitsPayment(entry));
  return (
    latest.find(
      ({ authorizations }) => authorization !== undefined && authorizations.has(authorization),
    ) ??
    latest.find(({ challenges }) => challenge !== undefined && challenges.has(challenge)) ??
    latest.find((entry) => key !== undefined && entry.route === route && entry.keys.has(key)) ??
    open.find((entry) => entry.connection === connection) ??
    open[0]
  );
}

/** An offer that is not paid, or whose payment was answered by another offer. */
function awaitsPayment({ cycle }: Entry): boolean {
  const state = stateOf(cycle);
  const last = cycle.legs.at(-1);
  return state === "offered" || (state === "refused" && last?.answer?.status === 402);
}
