import type { ChannelConfig } from "@coinslot/protocol";
import { toHex } from "viem";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import { type ClaimingDevnet, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";

const headerSchema = z.looseObject({ number: z.string(), timestamp: z.string() });
const filterSchema = z.object({ fromBlock: z.string(), toBlock: z.string() });

describe("a deposit behind a node that has once lied", () => {
  let here: ClaimingDevnet;
  let config: ChannelConfig;
  let lead: bigint;
  let years: bigint;
  let node: NodeProxy;

  beforeEach(async () => {
    lead = 0n;
    years = 0n;
    here = await startClaimingDevnet("sqlite");
    config = here.channels.configOf();
    node = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      const filter = filterSchema.safeParse(params[0]).data;
      if (method === "eth_getLogs" && filter && BigInt(filter.fromBlock) > BigInt(filter.toBlock)) {
        return { error: { code: -32_000, message: "invalid block range params" } };
      }
      const answer = await ask();
      if (!("result" in answer)) return answer;
      const isHead = method === "eth_blockNumber" || params[0] === "latest";
      if (isHead && method === "eth_blockNumber") {
        return { result: toHex(BigInt(z.string().parse(answer.result)) + lead) };
      }
      if (method !== "eth_getBlockByNumber" || answer.result === null) return answer;
      const header = headerSchema.parse(answer.result);
      const number = toHex(BigInt(header.number) + (isHead ? lead : 0n));
      const timestamp = toHex(BigInt(header.timestamp) + years);
      return { result: { ...header, number, timestamp } };
    });
  });

  afterEach(async () => {
    await here.stop();
    await node.close();
  });

  const start = () => here.start({}, { network: { rpcUrls: [node.url] }, times: { loseMs: 500 } });

  it("about the number of its head is served, and so are the others", async () => {
    const facilitator = await start();
    // Followed, before the lie.
    await here.admit(facilitator, price, here.channels.configOf());
    const request = await signDepositRequest(here, config, { timeoutMs: 1 });
    lead = 1_000n;
    await present(facilitator, request);
    await here.devnet.mine(1);
    lead = 0n;
    expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
    const other = here.channels.configOf();
    const next = await signDepositRequest(here, other);
    expect(await deposit(here, facilitator, next)).toMatchObject({ state: "deposited" });
  });

  it("about the time of a block ends no deposit", async () => {
    const facilitator = await start();
    await here.admit(facilitator, price, here.channels.configOf());
    const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 3_600);
    const request = await signDepositRequest(here, config, { timeoutMs: 1, validBefore });
    await here.devnet.setAutomine(false);
    await present(facilitator, request);
    years = 300_000_000n;
    const during = await present(facilitator, { ...request, timeoutMs: 1_000 });
    years = 0n;
    expect(during).not.toMatchObject({ state: "refused" });
    await here.devnet.setAutomine(true);
    expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
  });
});
