import { toLowerHex } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ClaimingDevnet, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";

describe("a key of claims that does not answer", () => {
  let here: ClaimingDevnet;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
  });

  afterEach(() => here.stop());

  it("keeps no channel of another key from its claim", async () => {
    const { channels } = here;
    const silent = privateKeyToAccount(generatePrivateKey());
    const account = {
      address: silent.address,
      sign: () => Promise.reject(new Error("The signer is down.")),
    };
    const facilitator = await here.start({ formerAuthorizers: [{ account }] });
    const former = channels.configOf({ receiverAuthorizer: toLowerHex(silent.address) });
    const config = channels.configOf();
    for (const each of [former, config]) await channels.deposit(each, 10_000n);
    // More than of the other one: its row would be first.
    await here.buy(facilitator, 3n * price, former);
    await here.buy(facilitator, price, config);
    await channels.withdraw(former, 10_000n);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    expect(await channels.stateOf(former)).toMatchObject({ totalClaimed: 0n });
  });
});
