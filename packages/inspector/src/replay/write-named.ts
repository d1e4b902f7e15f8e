import type { Challenge } from "@coinslot/protocol";
import * as z from "zod";

/** Values of a recorded payment that differ from its offer, by the member of the comparison. */
export type NamedOtherwise = Readonly<Record<string, string>>;

const terms = ["scheme", "network", "amount", "asset", "payTo"] as const;
const writable = new Set([
  ...terms.map((member) => `accepted.${member}`),
  "accepted.extra.name",
  "accepted.extra.version",
  "scheme",
  "network",
  "request.network",
  "request.amount",
  "request.asset",
  "request.payTo",
  "challenge",
  "challenge.id",
  "source",
]);

/**
 * Returns whether a replay can repeat a difference in this member. Those that are signed are signed
 * anew.
 */
export function isWritable(member: string): boolean {
  return writable.has(member);
}

/** The terms of version 2 with the recorded differences. */
export function nameAccepted(
  accepted: Readonly<Record<string, unknown>> & { extra?: Record<string, unknown> | undefined },
  named: NamedOtherwise,
): Record<string, unknown> {
  const changed: Record<string, unknown> = { ...accepted };
  for (const member of terms) {
    const value = named[`accepted.${member}`];
    if (value !== undefined) changed[member] = value;
  }
  const { "accepted.extra.name": name, "accepted.extra.version": version } = named;
  if (name === undefined && version === undefined) return changed;
  const extra = { ...accepted.extra, ...(name !== undefined && { name }) };
  return { ...changed, extra: { ...extra, ...(version !== undefined && { version }) } };
}

/**
 * A challenge with the recorded differences: its other members stay, and its id fits them no more.
 */
export function nameChallenge(challenge: Challenge, named: NamedOtherwise): Challenge {
  const isForeign = named.challenge !== undefined || named["challenge.id"] !== undefined;
  const id = isForeign
    ? `${challenge.id.slice(0, -1)}${challenge.id.endsWith("A") ? "B" : "A"}`
    : challenge.id;
  return { ...challenge, id, request: nameRequest(challenge.request, named) };
}

const requestSchema = z.looseObject({ methodDetails: z.looseObject({}).optional() });

function nameRequest(request: string, named: NamedOtherwise): string {
  const members = {
    amount: named["request.amount"],
    currency: named["request.asset"],
    recipient: named["request.payTo"],
  };
  const changed = Object.entries(members).filter(([, value]) => value !== undefined);
  const chainId = /^eip155:([1-9]\d{0,15})$/.exec(named["request.network"] ?? "")?.[1];
  if (changed.length === 0 && chainId === undefined) return request;
  const read = requestSchema.parse(JSON.parse(Buffer.from(request, "base64url").toString()));
  const details = chainId === undefined ? {} : { chainId: Number(chainId) };
  const methodDetails = { ...read.methodDetails, ...details };
  const text = JSON.stringify({ ...read, ...Object.fromEntries(changed), methodDetails });
  return Buffer.from(text).toString("base64url");
}
