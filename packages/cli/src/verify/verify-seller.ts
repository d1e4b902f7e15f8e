import { UnclearError, UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { readNetworks } from "../networks.ts";
import { formatPrice } from "../pay/format-price.ts";
import { readSpendableTokens, type SpendableToken } from "../pay/spendable-tokens.ts";
import type { Terminal } from "../terminal.ts";
import type { Check } from "./check.ts";
import { makePlan, type Plan, type RouteOffers } from "./make-plan.ts";
import { type Offers, offeredWires, readOffers } from "./offers/read-offers.ts";
import type { ChainRecord } from "./open-chain.ts";
import { openFundedPayer } from "./open-funded-payer.ts";
import { openPayer, type Payer } from "./open-payer.ts";
import { type Asker, createAsker, createProbe, type OfferProbe } from "./probe.ts";
import type { Target } from "./read-target.ts";
import { type Row, runChecks } from "./run-checks.ts";
import { SellerError } from "./seller-error.ts";

/** Options of one run. */
export interface Verification {
  terminal: Terminal;
  io: Io;
  target: Target;
  checks: readonly Check[];
  maxPrice: string;
  isUnpaid: boolean;
  isRealMoney: boolean;
  isSilent: boolean;
  timeoutMs: number;
}

/** Result of one run. */
export interface Verified {
  rows: Row[];
  plan: Plan | undefined;
  payer: Payer | undefined;
}

/**
 * Verifies a seller.
 *
 * @throws Error when nothing is sold there; UsageError for settings and a no; UnclearError when the
 * run ended early, after real money was sent
 */
export async function verifySeller(run: Verification): Promise<Verified> {
  const { terminal, io, target, checks, isUnpaid, timeoutMs } = run;
  const ask = createAsker(target, { timeoutMs, signal: terminal.signal });
  const stopWaiting = io.showWaiting(`asking ${target.url.host}`);
  const unpaid = await readSold(ask, target).finally(stopWaiting);
  const offers: OfferProbe = { target, unpaid, ask };
  if (isUnpaid || !checks.some(({ needsPayer }) => needsPayer)) {
    const tools = { offers, payments: undefined, reason: "--unpaid makes no payment" };
    return { rows: await runChecks(checks, tools), plan: undefined, payer: undefined };
  }
  const networks = readNetworks(terminal.env);
  const tokens = await readSpendableTokens(networks);
  const routes: RouteOffers = {
    main: unpaid.offers,
    other: await readRoute(ask, "--other", target.otherPath),
    failing: await readRoute(ask, "--failing", target.failingPath),
  };
  const plan = makePlan({ target, offers: routes, checks, tokens, maxPrice: run.maxPrice });
  const { token, reason } = plan;
  const network = networks.find((each) => each.network === token?.network);
  if (token === undefined || network === undefined) {
    const tools = { offers, payments: undefined, reason };
    return { rows: await runChecks(checks, tools), plan, payer: undefined };
  }
  const { account, chain, close } = await openFundedPayer({ ...run, network, token, plan });
  const payer = openPayer({
    account,
    plan,
    now: io.now,
    onPayment: (payment, index) => {
      if (!run.isRealMoney) return;
      const { value, nonce } = payment.authorization;
      const amount = priceOf(token, value);
      terminal.err(`payment ${index} of at most ${plan.count}: ${amount}, nonce ${nonce}`);
    },
  });
  try {
    const payments = createProbe({ ...offers, plan, payer, chain });
    const rows = await runChecks(checks, { offers, payments, reason });
    if (run.isRealMoney) await printExecutable({ terminal, io, payer, chain });
    return { rows, plan, payer };
  } catch (error) {
    if (!run.isRealMoney || payer.payments.length === 0) throw error;
    const sum = payer.payments.reduce(
      (total, { authorization }) => total + authorization.value,
      0n,
    );
    throw new UnclearError(
      `The run ended early, after ${payer.payments.length} payments of ${priceOf(token, sum)} in all: each may have been taken, or still be, within an hour.`,
      { cause: error },
    );
  } finally {
    close();
  }
}

/** Warns of payments that the seller has not taken: it still may, until their time is over. */
async function printExecutable(run: {
  terminal: Terminal;
  io: Io;
  payer: Payer;
  chain: ChainRecord;
}): Promise<void> {
  const { terminal, io, payer, chain } = run;
  let count = 0;
  let end = 0n;
  for (const payment of payer.payments) {
    const { validBefore } = payment.authorization;
    const isOver = Number(validBefore) * 1000 <= io.now();
    // One of which the chain cannot be asked may be executable.
    if (isOver || (await chain.isUsed(payment).catch(() => false))) continue;
    count += 1;
    if (validBefore > end) end = validBefore;
  }
  terminal.signal.throwIfAborted();
  if (count === 0) return;
  const subject = count === 1 ? "1 payment is" : `${count} payments are`;
  const until = new Date(Number(end) * 1000).toISOString();
  terminal.err(`${subject} not taken yet, and may stay executable until ${until}`);
}

/** An amount in whole tokens. */
function priceOf(token: SpendableToken, amount: bigint): string {
  const { network, address } = token;
  return formatPrice({ network, asset: address, amount: `${amount}` }, [token]);
}

async function readSold(ask: Asker, { url }: Target): Promise<OfferProbe["unpaid"]> {
  try {
    const answer = await ask();
    const { status } = answer;
    if (status >= 300 && status < 400) {
      throw new Error(`It answers ${status}, and redirects are not followed: name the URL itself.`);
    }
    if (status !== 402) {
      throw new Error(`It answers ${status} without a payment, not 402: nothing is sold there.`);
    }
    const offers = readOffers(answer);
    if (offeredWires(offers).length > 0) return { answer, offers };
    throw new Error("It answers 402 with no offer of x402 or MPP: no client can pay it.");
  } catch (error) {
    if (!(error instanceof SellerError)) throw error;
    throw new Error(`${url.host} gives no answer to verify: ${error.message}.`, { cause: error });
  }
}

async function readRoute(
  ask: Asker,
  option: string,
  path: string | undefined,
): Promise<Offers | undefined> {
  if (path === undefined) return undefined;
  try {
    const answer = await ask({ path });
    if (answer.status === 402) return readOffers(answer);
    throw new UsageError(`${option}: ${path} answers ${answer.status} without a payment, not 402.`);
  } catch (error) {
    if (!(error instanceof SellerError)) throw error;
    throw new UsageError(`${option}: ${path}: ${error.message}.`, { cause: error });
  }
}
