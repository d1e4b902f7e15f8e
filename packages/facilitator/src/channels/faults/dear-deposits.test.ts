import { type Hex, toLowerHex } from "@coinslot/protocol";
import { expect, it, onTestFinished } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import { price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
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
