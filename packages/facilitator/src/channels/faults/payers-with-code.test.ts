import { smartAccount, smartAccountAnswers } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { encodeFunctionData } from "viem";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ClaimingDevnet, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";

describe("a channel of a payer with code", () => {
  let here: ClaimingDevnet;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
  });

  afterEach(() => here.stop());

  it("is claimed by its signer's key, also where the contract's answers flip after the sale", async () => {
    const { devnet, channels } = here;
    const { buyer, deployer } = devnet.accounts;
    const payer = await devnet.deploySmartAccount({ owner: buyer.address });
    await devnet.mint({ to: payer, amount: 10_000n });
    const config = channels.configOf({ payer: toLowerHex(payer) });
    const facilitator = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    const args = [smartAccountAnswers.refuses] as const;
    const data = encodeFunctionData({ abi: smartAccount.abi, functionName: "setAnswer", args });
    await devnet.client.sendTransaction({ account: deployer, to: payer, data });
    await channels.withdraw(config, 10_000n);
    await here.claimed(6_000n, config);
    await here.drained(facilitator);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("is claimed where the payer delegates to a contract after the sale (EIP-7702)", async () => {
    const { devnet, channels } = here;
    const config = channels.configOf();
    const facilitator = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 4_000n, config);
    const refusing = await devnet.deploySmartAccount({ answer: "refuses" });
    await devnet.delegate(devnet.accounts.buyer, refusing);
    expect(await here.buyOnce(facilitator, 4_000n + price, config)).toBe(true);
    await channels.withdraw(config, 10_000n);
    await here.claimed(6_000n, config);
    await here.drained(facilitator);
    expect(await here.lost(facilitator)).toBe(0);
  });
});
