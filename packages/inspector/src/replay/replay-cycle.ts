import { isNetwork, isWellFormedAddress } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { Cycle, Leg, OfferedWay } from "../cycles/cycle.ts";
import { decodedBelow, parseJson, removed } from "../decode/header-value.ts";
import { readReceipts, readRefusal } from "../decode/read-answer.ts";
import { isLoopbackHost } from "../local-node.ts";
import { type FreshOffer, readFreshOffer } from "./fresh-offer.ts";
import { type LocalChain, openLocalChain, ReplayRefusedError } from "./local-chain.ts";
import { signAnew } from "./sign-anew.ts";
import { isWritable } from "./write-named.ts";

/** A fact of the recording, beside the replay's. */
export interface ReplayLine {
  about: string;
  recorded: string;
  now: string;
  isSame: boolean;
}

/** The outcome of a replay. */
export interface ReplayReport {
  isSame: boolean;
  lines: ReplayLine[];
}

interface ReplayPlace {
  /** Origin of the seller, or of an inspector before it: on this machine. */
  url: string;
  /** Origin of the seller behind that inspector. */
  seller?: string;
  /** A development node of this machine. */
  rpcUrl: string;
  now?: () => number;
}

/**
 * Makes a recorded cycle anew: the unpaid request, and its payment with the differences that it had
 * to its offer. A throwaway key signs, on a local chain alone; the tokens come from the account of
 * the recorded payer there.
 *
 * @throws ReplayRefusedError for another chain, another machine, or a recording that lacks a part
 */
export async function replayCycle(cycle: Cycle, place: ReplayPlace): Promise<ReplayReport> {
  const { url, seller = url, rpcUrl, now = Date.now } = place;
  const origin = readLocalOrigin(url);
  readLocalOrigin(seller);
  const chain = await openLocalChain(rpcUrl);
  const paid = cycle.legs.findLast(({ payment }) => payment?.isRepeated === false);
  const unpaid = cycle.legs.find(({ payment }) => payment === undefined);
  const first = unpaid ?? paid;
  if (first === undefined) throw new ReplayRefusedError("The recorded cycle holds no request.");
  requireLocal(paid?.payment?.network, chain);
  requireShown(cycle, [first, paid ?? first]);
  const lines: ReplayLine[] = [];
  const asked = await ask(origin, first, undefined);
  if (unpaid !== undefined) {
    lines.push(line("unpaid answer", unpaid.answer?.status, asked.answer.status));
    lines.push(line("offers", describeWays(unpaid.ways), describeWays(asked.offer.ways)));
  }
  if (paid?.payment !== undefined) {
    const header = await writePayment(paid, asked.offer, chain, now);
    const bought = await ask(origin, paid, header);
    lines.push(line("paid answer", paid.answer?.status, bought.answer.status));
    lines.push(line("receipt", outcomeOf(paid.receipt), outcomeOf(bought.receipt)));
    if (paid.refusal !== undefined || bought.reason !== undefined) {
      lines.push(line("reason", paid.refusal?.reason, bought.reason));
    }
  }
  return { lines, isSame: lines.every(({ isSame }) => isSame) };
}

function readLocalOrigin(url: string): URL {
  const origin = URL.canParse(url) ? new URL(url) : undefined;
  if (origin !== undefined && isLoopbackHost(origin.hostname)) return origin;
  throw new ReplayRefusedError("A replay asks a seller of this machine: the URL leads elsewhere.");
}

async function writePayment(
  leg: Leg,
  offer: FreshOffer,
  chain: LocalChain,
  now: () => number,
): Promise<[string, string]> {
  const { payment } = leg;
  if (payment === undefined) throw new ReplayRefusedError("The recorded request has no payment.");
  const same = offer.ways.filter(({ wire }) => wire === payment.wire);
  const way =
    same.find(
      ({ network, asset }) => network === payment.network && asset === payment.way?.asset,
    ) ?? same[0];
  if (way === undefined) {
    throw new ReplayRefusedError(`The seller makes no offer by ${payment.wire} any more.`);
  }
  requireLocal(way.network, chain);
  const payer = privateKeyToAccount(generatePrivateKey());
  const nonce = offer.nonceOf(way);
  const named = namedOtherwise(leg);
  const signed = await signAnew({ leg, payment, way, payer, nonce, now: now() });
  const isPoor = leg.refusal?.reason === "invalid_exact_evm_insufficient_balance";
  const from = payment.authorization?.from ?? "";
  if (!isPoor && isWellFormedAddress(from) && isWellFormedAddress(way.asset)) {
    const amount = BigInt(signed.authorization.value);
    await chain.fund({ token: way.asset, from, to: payer.address, amount });
  }
  const header = offer.write(way, signed, named);
  if (header === undefined) throw new ReplayRefusedError("The offer cannot be paid by a replay.");
  return header;
}

/**
 * Members that the recorded payment named otherwise than its offer. A challenge that was not seen,
 * and was paid all the same, was none the less one of the seller's.
 */
function namedOtherwise({ payment, answer }: Leg): Record<string, string> {
  const isServed = (answer?.status ?? 500) < 400;
  const rows = (payment?.comparisons ?? []).filter(({ member, verdict }) => {
    if (verdict !== "differs" || (isServed && member.startsWith("challenge"))) return false;
    return isWritable(member);
  });
  return Object.fromEntries(rows.map(({ member, presented }) => [member, presented]));
}

/** A person sees the cycle's method and path: a file of a stranger may hold others beneath them. */
function requireShown({ method, target }: Cycle, legs: readonly Leg[]): void {
  const isShown = legs.every(
    ({ request }) => request.method === method && request.target === target,
  );
  if (isShown) return;
  throw new ReplayRefusedError("The cycle's requests differ in method or URL: none is replayed.");
}

function requireLocal(network: string | undefined, chain: LocalChain): void {
  if (network === undefined || network === chain.network) return;
  const named = isNetwork(network) ? network : "another chain";
  throw new ReplayRefusedError(
    `The payment is on ${named}, and the local chain is ${chain.network}. A replay pays on the local chain alone.`,
  );
}

/** Headers that the client writes by itself, or that hold nothing any more. */
const own =
  /^(?:host|connection|content-length|transfer-encoding|keep-alive|te|expect|upgrade|accept-encoding|via)$/i;

async function ask(origin: URL, { request }: Leg, payment: [string, string] | undefined) {
  const { method, target, headers, body } = request;
  if (target.includes(removed)) {
    throw new ReplayRefusedError("The request's URL held a secret, which recordings leave out.");
  }
  const kept = headers.filter(
    ([name, value]) => !own.test(name) && !value.includes(removed) && !value.includes(decodedBelow),
  );
  const hasBody = body.bytes > 0 && method !== "GET" && method !== "HEAD";
  if (hasBody && (!body.isWhole || body.text === undefined)) {
    throw new ReplayRefusedError("The request's body is not in the recording as a whole.");
  }
  const path = target.startsWith("/") ? target : "/";
  const answer = await fetch(`${origin.origin}${path}`, {
    method,
    headers: [...kept, ...(payment === undefined ? [] : [payment])],
    redirect: "manual",
    ...(hasBody ? { body: body.text ?? "" } : {}),
  }).catch(() => {
    throw new ReplayRefusedError(`The seller at ${origin.origin} does not answer. Is it running?`);
  });
  const text = await answer.text();
  const { receipt } = readReceipts([...answer.headers]);
  const isRefused = answer.status >= 400;
  const reason = isRefused ? readRefusal(parseJson(text), receipt)?.reason : undefined;
  return { answer, receipt, reason, offer: readFreshOffer(answer, text) };
}

function describeWays(ways: readonly OfferedWay[]): string {
  const words = ways.map(({ wire, price, network }) => `${price} on ${network} by ${wire}`);
  return words.join(", ") || "none";
}

function outcomeOf(receipt: { success: boolean } | undefined): string {
  if (receipt === undefined) return "none";
  return receipt.success ? "success" : "failure";
}

function line(about: string, recorded: unknown, now: unknown): ReplayLine {
  const words = [recorded, now].map((value) => (value === undefined ? "none" : String(value)));
  const [then = "", since = ""] = words;
  return { about, recorded: then, now: since, isSame: then === since };
}
