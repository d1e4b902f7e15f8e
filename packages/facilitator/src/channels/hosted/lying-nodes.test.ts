import { toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

const config = "(address,address,address,address,address,uint40,bytes32)";
const tried = [
  toFunctionSelector("settle(address,address)"),
  toFunctionSelector(`claim(((${config},uint128),bytes,uint128)[])`),
];

describe("a caller's channels behind two nodes, the first of which reverts trials", () => {
  let here: HostingDevnet;
  let facilitator: CoinslotFacilitator;
  let lies: number;

  beforeEach(async () => {
    lies = 0;
    here = await startHostingDevnet("sqlite");
    const { rpcUrl } = here.devnet;
    const liar = await startNodeProxy(rpcUrl, async ({ method, params }, ask) => {
      const text = JSON.stringify(params);
      if (method !== "eth_call" || !tried.some((each) => text.includes(each))) return ask();
      lies += 1;
      return { error: { code: 3, message: "execution reverted", data: "0x" } };
    });
    onTestFinished(liar.close);
    facilitator = await here.start({}, { network: { rpcUrls: [liar.url, rpcUrl] } });
  });
  afterEach(() => here?.stop());

  it.each([true, false])(
    "are claimed, also by a signature of the caller's: %s",
    async (isSigned) => {
      const { channels } = here;
      const opened = [await here.open(9_000n), await here.open(9_000n)];
      const rows = await Promise.all(opened.map((each) => channels.rowOf(each, 4_000n)));
      const claim = here.claim(rows, isSigned ? await channels.signBatch(rows) : undefined);
      expect(await here.settle(facilitator, claim)).toMatchObject({ state: "done" });
      expect(lies).toBeGreaterThan(0);
    },
  );

  it("are settled", async () => {
    const { channels, devnet } = here;
    const row = await channels.rowOf(await here.open(9_000n), 4_000n);
    expect(await here.settle(facilitator, here.claim([row]))).toMatchObject({ state: "done" });
    lies = 0;
    const receiver = devnet.accounts.seller.address;
    const settle = { type: "settle", receiver, token: devnet.token };
    expect(await here.settle(facilitator, settle)).toMatchObject({ state: "done", amount: 4_000n });
    expect(lies).toBeGreaterThan(0);
  });

  it("have a bad row refused, by the words of the first node", async () => {
    const row = await here.channels.rowOf(await here.open(2_000n), 4_000n);
    expect(await here.settle(facilitator, here.claim([row]))).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_claim_simulation_failed",
    });
  });
});
