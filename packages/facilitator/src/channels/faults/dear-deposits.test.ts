import { type Hex, toLowerHex } from "@coinslot/protocol";
import { numberToHex, zeroHash } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import { patience, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { dearWallet } from "../../testing/wallets.ts";

it("counts a deposit that uses more gas than it must against the budget of payers with code", async () => {
  const here = await startClaimingDevnet("sqlite");
  onTestFinished(() => here.stop());
  // One deposit at a time: each has 550,000 gas at risk.
  const facilitator = await here.start({}, { payersWithCode: { gasPerMinute: 700_000n } });
  await here.admit(facilitator, price, here.channels.configOf());
  const request = async (bytecode?: Hex) => {
    const { devnet, channels } = here;
    const wallet = await devnet.deployLyingWallet();
    if (bytecode) await devnet.client.setCode({ address: wallet, bytecode });
    await devnet.mint({ to: wallet, amount: 20_000n });
    return signDepositRequest(here, channels.configOf({ payer: toLowerHex(wallet) }));
  };
  const deposited = { state: "deposited" };
  expect(await deposit(here, facilitator, await request())).toMatchObject(deposited);
  expect(await deposit(here, facilitator, await request(dearWallet))).toMatchObject(deposited);
  await expect(present(facilitator, await request())).rejects.toThrow(/gas .* is used up/);
});

it("counts a deposit that burns our gas and is executed by its payer behind us", async () => {
  const here = await startClaimingDevnet("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const { client, accounts } = devnet;
  const facilitator = await here.start({}, { payersWithCode: { gasPerMinute: 700_000n } });
  await here.admit(facilitator, price, channels.configOf());
  const wallet = await devnet.deployLyingWallet();
  // Accepts any signature; burns where the relayer is the origin, once its first slot holds 1.
  const relayer = accounts.relayer.address.slice(2);
  const bytecode = `0x3273${relayer}145f5416602b57631626ba7e60e01b5f5260205ff35bfe` as const;
  await client.setCode({ address: wallet, bytecode });
  await devnet.mint({ to: wallet, amount: 20_000n });
  const config = channels.configOf({ payer: toLowerHex(wallet) });
  const request = await signDepositRequest(here, config, { salt: zeroHash });
  await devnet.setAutomine(false);
  const pending = await present(facilitator, { ...request, timeoutMs: 100 });
  expect(pending).toMatchObject({ state: "pending" });
  await vi.waitFor(async () => {
    expect(await client.getTxpoolStatus()).toMatchObject({ pending: 1 });
  }, patience);
  await client.setStorageAt({ address: wallet, index: 0, value: numberToHex(1, { size: 32 }) });
  const data = await channels.signDeposit(config, 20_000n);
  await here.sendDepositLast(config, { amount: 20_000n, data });
  await devnet.mine(1);
  const { transactions } = await client.getBlock();
  const [ours, foreign] = transactions;
  if (ours === undefined) throw new Error("The block is empty.");
  const { status, gasUsed } = await client.getTransactionReceipt({ hash: ours });
  expect({ status, isDear: gasUsed > 500_000n }).toEqual({ status: "reverted", isDear: true });
  await devnet.setAutomine(true);
  const deposited = { state: "deposited", transaction: foreign };
  expect(await deposit(here, facilitator, request)).toMatchObject(deposited);
  const honest = await devnet.deployLyingWallet();
  await devnet.mint({ to: honest, amount: 20_000n });
  const next = await signDepositRequest(here, channels.configOf({ payer: toLowerHex(honest) }));
  await expect(present(facilitator, next)).rejects.toThrow(/gas .* is used up/);
});
