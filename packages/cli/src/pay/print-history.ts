import { type FoundRefunds, findRefunds } from "@coinslot/client";
import { findNetworks, isHttpUrl } from "@coinslot/hosting/environment";
import { findKnownToken, formatMoney } from "@coinslot/protocol";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { formatPrice } from "./format-price.ts";
import type { PayContext } from "./pay-context.ts";
import { type PastPayment, readHistory } from "./payment-history.ts";
import { printable } from "./printable.ts";

const maxShown = 50;

interface Shown {
  payment: PastPayment;
  /** `undefined`: no node of its network returned the logs. */
  found: FoundRefunds | undefined;
}

/** `coinslot pay --history`: the newest payments, each with its refund as the chain shows it. */
export async function printHistory({ terminal, io, isJson }: PayContext): Promise<void> {
  const all = io.historyFile === undefined ? [] : readHistory(io.historyFile);
  const payments = all.slice(0, maxShown);
  const stopWaiting = io.showWaiting("asking the chain for refunds");
  const found = await searchRefunds(terminal, payments).finally(stopWaiting);
  const shown = payments.map((payment) => ({ payment, found: found.get(payment) }));
  if (isJson) return terminal.out(formatJson({ payments: shown.map(toRecord) }));
  if (shown.length === 0) return terminal.err("This user has paid for nothing yet.");
  const rows = shown.map((each) => toRow(terminal, each));
  terminal.out(formatTable(terminal, [["time (UTC)", "state", "paid", "refund", "for"], ...rows]));
  if (all.length > maxShown) terminal.err(`These are the newest ${maxShown} of ${all.length}.`);
  if (shown.some(({ found, payment }) => found === undefined && !payment.terms.channel)) {
    terminal.err("Unknown refunds: no configured endpoint of that network returned the logs.");
  }
}

/** A payment that was refused, or whose outcome is unclear, may have been executed all the same. */
async function searchRefunds(
  terminal: Terminal,
  payments: readonly PastPayment[],
): Promise<Map<PastPayment, FoundRefunds>> {
  const found = new Map<PastPayment, FoundRefunds>();
  const networks = findNetworks(terminal.env, () => undefined);
  await Promise.all(
    networks.map(async ({ network, rpcUrls }) => {
      // Uncharged money of a channel comes back with its deposit, and not by payment.
      const own = payments.filter(({ terms }) => terms.network === network && !terms.channel);
      const urls = rpcUrls.filter(isHttpUrl);
      if (own.length === 0 || urls.length === 0) return;
      const searched = own.map(({ terms, transaction }) => ({ ...terms, transaction }));
      const refunds = await findRefunds({
        payments: searched,
        rpcUrls: { [network]: urls },
      }).catch(() => []);
      for (const [index, payment] of own.entries()) {
        const each = refunds[index];
        if (each !== undefined) found.set(payment, each);
      }
    }),
  );
  return found;
}

function toRow(terminal: Terminal, { payment, found }: Shown): string[] {
  const { at, state, method, url } = payment;
  return [
    new Date(at).toISOString().slice(0, 19).replace("T", " "),
    state === "settled" ? state : paint(terminal, "yellow", printable(state)),
    describePrice(payment),
    describeRefund(payment, found),
    printable(`${method} ${url}`),
  ];
}

function describePrice({ terms }: PastPayment): string {
  const price = formatPrice(terms, tokensOf(terms));
  const { deposit } = terms.channel ?? {};
  if (deposit === undefined) return price;
  return `${price}, deposit ${formatPrice({ ...terms, amount: deposit }, tokensOf(terms))}`;
}

function describeRefund({ terms }: PastPayment, found: FoundRefunds | undefined): string {
  if (terms.channel) return `channel ${terms.channel.id.slice(0, 12)}`;
  if (found === undefined) return "unknown";
  const { refunded, isComplete } = found;
  const part = isComplete ? "" : " at least";
  if (refunded === 0n) return isComplete ? "none" : "none found";
  const price = formatPrice({ ...terms, amount: refunded.toString() }, tokensOf(terms));
  return refunded >= BigInt(terms.amount) ? `all${part}: ${price}` : `${price}${part}`;
}

function tokensOf({ network, asset }: PastPayment["terms"]) {
  const known = findKnownToken(network, asset);
  return known === undefined ? [] : [{ network, ...known }];
}

function toRecord({ payment, found }: Shown) {
  const { at, state, method, url, terms, transaction = null } = payment;
  const { network, asset, payer, payTo, amount: value, nonce, channel } = terms;
  const known = findKnownToken(network, asset);
  return {
    at: new Date(at).toISOString(),
    state,
    method,
    url,
    network,
    asset,
    payer,
    payTo,
    value,
    amount: known ? formatMoney(BigInt(value), known.decimals) : null,
    nonce,
    channel: channel ?? null,
    transaction,
    refunded: found?.refunded ?? null,
    isComplete: found?.isComplete ?? null,
    refunds: found?.refunds ?? null,
  };
}
