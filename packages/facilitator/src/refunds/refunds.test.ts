import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import type { Refund } from "../ledger/refunds/refund.ts";
import { idOf, reserve, settle } from "../testing/settling-actions.ts";
import { engines, type SettlingDevnet, startSettlingDevnet } from "../testing/settling-devnet.ts";

const patience = { timeout: 60_000, interval: 50 };
const float = privateKeyToAccount(generatePrivateKey());
const floatKey = generatePrivateKey();
const floatAccount = privateKeyToAccount(floatKey);
const network = { finalAfter: 2 };

let here: SettlingDevnet | undefined;
afterEach(async () => {
  await here?.stop();
  here = undefined;
});

async function begin(engine: (typeof engines)[number]): Promise<SettlingDevnet> {
  here = await startSettlingDevnet(engine);
  await here.devnet.mint({ to: floatAccount.address, amount: 10_000n });
  return here;
}

const withFloat = { network, refunds: { privateKey: floatKey } };

/** A settled payment, by its id in the ledger. */
async function settled(facilitator: CoinslotFacilitator, { pay }: SettlingDevnet): Promise<string> {
  const paid = await pay();
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  const { payments } = await facilitator.payments.list();
  const payment = payments.find(({ authorization }) => authorization.nonce === idOf(paid).nonce);
  if (payment === undefined) throw new Error("The payment is not listed");
  return payment.id;
}

/** Mines until a refund is in this state. */
async function becomes(
  facilitator: CoinslotFacilitator,
  { devnet }: SettlingDevnet,
  { id }: Pick<Refund, "id">,
  expected: Partial<Refund>,
): Promise<Refund | undefined> {
  return vi.waitFor(async () => {
    await devnet.mine(1);
    const refund = await facilitator.refunds.get(id);
    expect(refund).toMatchObject(expected);
    return refund;
  }, patience);
}

describe.each(engines)("refunds on %s", (engine) => {
  it("gives a settled payment back from the float, once it is final", async () => {
    const at = await begin(engine);
    const { start, balanceOf, devnet } = at;
    const facilitator = await start(withFloat);
    const payment = await settled(facilitator, at);
    const before = await balanceOf(devnet.accounts.buyer.address);
    const request = { payment, reason: "did not work", idempotencyKey: "one" };

    const refund = await facilitator.refunds.create(request);

    expect(refund).toMatchObject({ payment, n: 1, amount: 1_000n, state: "scheduled" });
    await becomes(facilitator, at, refund, { state: "final" });
    expect(await balanceOf(devnet.accounts.buyer.address)).toBe(before + 1_000n);
    expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    expect(await facilitator.refunds.create(request)).toMatchObject({ id: refund.id });
    // It is no sale.
    expect((await facilitator.payments.list()).payments).toHaveLength(1);
    expect(await facilitator.stats()).toMatchObject([{ state: "confirmed", count: 1 }]);
  }, 120_000);
});
void float;
void reserve;
