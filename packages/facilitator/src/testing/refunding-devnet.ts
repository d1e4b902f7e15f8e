import { rm } from "node:fs/promises";
import { backUpDatabase, testUsdt0 } from "@coinslot/devnet";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, expect, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import type { Refund } from "../ledger/refunds/refund.ts";
import { idOf, settle } from "./settling-actions.ts";
import { type Engine, type SettlingDevnet, startSettlingDevnet } from "./settling-devnet.ts";

export const floatKey = generatePrivateKey();
export const floatAccount = privateKeyToAccount(floatKey);
/** Options of a facilitator with a float, on a chain where two blocks are final. */
export const withFloat = { network: { finalAfter: 2 }, refunds: { privateKey: floatKey } };
export const patience = { timeout: 60_000, interval: 50 };

/** Makes what starts a devnet for a test with money in the float. */
export function useRefundingDevnet(): (
  engine: Engine,
  options?: { float?: bigint },
) => Promise<SettlingDevnet> {
  let here: SettlingDevnet | undefined;
  afterEach(async () => {
    await here?.stop();
    here = undefined;
  });
  return async (engine, { float = 10_000n } = {}) => {
    here = await startSettlingDevnet(engine);
    if (float > 0n) await here.devnet.mint({ to: floatAccount.address, amount: float });
    return here;
  };
}

/** A settled payment of 1,000 units, by its id in the ledger. */
export async function settled(
  facilitator: CoinslotFacilitator,
  { pay }: SettlingDevnet,
): Promise<string> {
  const paid = await pay();
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  return idInLedger(facilitator, paid);
}

/** The id that the ledger gave to a payment. */
export async function idInLedger(
  facilitator: CoinslotFacilitator,
  paid: Awaited<ReturnType<SettlingDevnet["pay"]>>,
): Promise<string> {
  const { payments } = await facilitator.payments.list();
  const payment = payments.find(({ authorization }) => authorization.nonce === idOf(paid).nonce);
  if (payment === undefined) throw new Error("The payment is not listed");
  return payment.id;
}

/** Mines until a refund is as expected. */
export async function becomes(
  facilitator: CoinslotFacilitator,
  { devnet }: SettlingDevnet,
  { id }: Pick<Refund, "id">,
  expected: Partial<Refund>,
): Promise<Refund> {
  return vi.waitFor(async () => {
    await devnet.mine(1);
    const refund = await facilitator.refunds.get(id);
    expect(refund).toMatchObject(expected);
    if (refund === undefined) throw new Error("unreachable");
    return refund;
  }, patience);
}

/** Refunds a payment in full, and puts the ledger back to before that. No seller runs then. */
export async function loseRefund(
  here: SettlingDevnet,
  payment: string,
  { isOneCancelled = false }: { isOneCancelled?: boolean } = {},
): Promise<void> {
  const { ledger, start } = here;
  const backup = await backUpDatabase(ledger.url);
  const facilitator = await start(withFloat);
  if (isOneCancelled) {
    const float = await here.balanceOf(floatAccount.address);
    await setFloat(here, 0n);
    const cancelled = await facilitator.refunds.create({ payment, idempotencyKey: "cancelled" });
    await becomes(facilitator, here, cancelled, { state: "waiting", cause: "float_balance" });
    await facilitator.refunds.cancel(cancelled.id);
    await setFloat(here, float);
  }
  const lost = await facilitator.refunds.create({ payment, idempotencyKey: "before" });
  await becomes(facilitator, here, lost, { state: "final" });
  await facilitator.close();
  await backup.restore();
  if (!ledger.url.startsWith("sqlite:")) return;
  for (const suffix of ["-wal", "-shm"]) {
    await rm(ledger.url.slice("sqlite:".length) + suffix, { force: true });
  }
}

/** Sends all tokens of the float away, or some to it. */
export async function setFloat({ devnet, balanceOf }: SettlingDevnet, amount: bigint) {
  const balance = await balanceOf(floatAccount.address);
  if (balance < amount) {
    await devnet.mint({ to: floatAccount.address, amount: amount - balance });
    return;
  }
  if (balance === amount) return;
  await devnet.client.setBalance({ address: floatAccount.address, value: 10n ** 18n });
  const hash = await devnet.client.writeContract({
    account: floatAccount,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "transfer",
    args: [devnet.accounts.seller.address, balance - amount],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
}
