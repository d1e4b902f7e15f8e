import { toLowerHex } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import { patience, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";

it("the gas of a burnt deposit counts for a minute, though it is brought again as one of a key", async () => {
  const here = await startClaimingDevnet("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const { client, accounts } = devnet;
  const facilitator = await here.start();
  await here.admit(facilitator, price, channels.configOf());
  const { buyer, relayer } = accounts;
  const { address } = buyer;
  // Accepts any signature; burns where the relayer is the origin, once its first slot holds 1.
  const origin = relayer.address.slice(2);
  const bytecode = `0x3273${origin}145f5416602b57631626ba7e60e01b5f5260205ff35bfe` as const;
  await client.setCode({ address, bytecode });
  const request = await signDepositRequest(here, channels.configOf());
  await devnet.setAutomine(false);
  await present(facilitator, { ...request, timeoutMs: 100 });
  await vi.waitFor(async () => {
    expect(await client.getTxpoolStatus()).toMatchObject({ pending: 1 });
  }, patience);
  await client.setStorageAt({ address, index: 0, value: numberToHex(1, { size: 32 }) });
  await devnet.mine(1);
  await devnet.setAutomine(true);
  expect(await deposit(here, facilitator, request)).toMatchObject({ state: "refused" });
  await client.setStorageAt({ address, index: 0, value: numberToHex(0, { size: 32 }) });
  await expect(present(facilitator, request)).rejects.toThrow(/gas .* is used up/);
  await client.setCode({ address, bytecode: "0x" });
  await expect(present(facilitator, request)).rejects.toThrow(/gas .* is used up/);
  expect(await client.getTransactionCount({ address: toLowerHex(relayer.address) })).toBe(1);
});
