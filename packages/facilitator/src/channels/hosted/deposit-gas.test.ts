import { withDatabase } from "@coinslot/devnet";
import { CallerLimitedError, channelSettlementAbi, toLowerHex } from "@coinslot/protocol";
import { getAbiItem, toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { engines } from "../../testing/settling-devnet.ts";

const depositSelector = toFunctionSelector(
  getAbiItem({ abi: channelSettlementAbi, name: "deposit" }),
);

describe.each(engines)("a caller's gas, on %s", (engine) => {
  let here: HostingDevnet;

  beforeEach(async () => {
    here = await startHostingDevnet(engine);
  });
  afterEach(() => here?.stop());

  const gasRows = () =>
    withDatabase(here.ledger.url, ({ read }) => read("select caller, by_buyer from caller_gas"));

  it("is not used by a deposit whose trial no node answers, and by the same one later", async () => {
    let isAway = true;
    const proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      const isTrial =
        method === "eth_call" && JSON.stringify(params).includes(depositSelector.slice(2));
      return isAway && isTrial ? undefined : ask();
    });
    onTestFinished(proxy.close);
    const facilitator = await here.start({}, { network: { rpcUrls: [proxy.url] } });
    const config = here.channels.configOf();
    const payload = await here.deposit(config);
    await expect(here.settle(facilitator, payload, { config })).rejects.toThrow();
    expect(await gasRows()).toEqual([]);
    isAway = false;
    expect(await here.settle(facilitator, payload, { config })).toMatchObject({ state: "done" });
    expect(await gasRows()).toMatchObject([{ caller: "shop" }]);
  });

  it("is not used by a deposit beyond the limit of its payer's trials, or in vain", async () => {
    const facilitator = await here.start();
    const [poor] = here.devnet.accounts.others;
    if (poor === undefined) throw new Error("No account.");
    const payer = toLowerHex(poor.address);
    const config = here.channels.configOf({ payer, payerAuthorizer: payer });
    const forged = await here.deposit(config, { payer: poor, signer: poor });
    for (let count = 0; count < 30; count += 1) {
      expect(await here.settle(facilitator, forged, { config })).toMatchObject({
        reason: "invalid_batch_settlement_evm_insufficient_balance",
      });
    }
    const next = here.settle(facilitator, forged, { config });
    await expect(next).rejects.toThrow(CallerLimitedError);
    expect(await gasRows()).toEqual([]);
  });
});
