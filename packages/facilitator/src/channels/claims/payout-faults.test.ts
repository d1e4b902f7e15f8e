import { type ChannelConfig, channelSettlementAbi } from "@coinslot/protocol";
import { encodeFunctionData, toEventSelector, toHex } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import { openLedger } from "../../ledger/open-ledger.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { type NodeAnswer, type NodeCall, startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const abi = channelSettlementAbi;
const settledTopic = abi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
)[0];
const rangeSchema = z.looseObject({ toBlock: z.string(), topics: z.unknown() });
const logsSchema = z.object({ result: z.array(z.looseObject({ blockNumber: z.string() })) });

describe.each(enginesByDay("sqlite"))("a claim beside faults of payouts, on %s", (engine) => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet(engine);
    channels = here.channels;
    config = channels.configOf();
    await channels.deposit(config, 10_000n);
  });

  afterEach(() => here.stop());

  async function countPayouts() {
    const { url } = here.ledger;
    const { database, close } = await openLedger({ url, processId: "reader", readOnly: true });
    const rows = await database.kysely.selectFrom("channel_payouts").select("id").execute();
    await close();
    return rows.length;
  }

  /** A node that shows each `Settled` in the last block that it is asked for, as soon as it can. */
  async function showEarly(
    { method, params }: NodeCall,
    ask: (call?: NodeCall) => Promise<NodeAnswer>,
  ): Promise<NodeAnswer> {
    const filter = rangeSchema.safeParse(params[0]).data;
    if (method !== "eth_getLogs" || !JSON.stringify(filter?.topics).includes(`${settledTopic}`)) {
      return ask();
    }
    const { client } = here.devnet;
    const asked = [{ ...filter, toBlock: toHex(await client.getBlockNumber()) }];
    const result = await client.request({ method, params: asked } as never);
    const logs = logsSchema.parse({ result }).result;
    return { result: logs.map((log) => ({ ...log, blockNumber: filter?.toBlock })) };
  }

  it("is made after a node has shown the payout of another one in an earlier block", async () => {
    let isEarly = false;
    const node = await startNodeProxy(here.devnet.rpcUrl, (call, ask) =>
      isEarly ? showEarly(call, ask) : ask(),
    );
    onTestFinished(node.close);
    const start = () => here.start({}, { network: { rpcUrls: [node.url] } });
    const first = await start();
    const other = channels.configOf();
    await channels.deposit(other, 10_000n);
    await here.buyOnce(first, price, config);
    await here.buyOnce(first, price, other);
    await channels.withdraw(other, 10_000n);
    await here.claimed(price, other);
    await first.close();
    const { receiver, token } = config;
    const args = [receiver, token] as const;
    const data = encodeFunctionData({ abi, functionName: "settle", args });
    await here.sendFirst(here.devnet.accounts.seller, data);
    isEarly = true;
    const misled = await start();
    await vi.waitFor(async () => expect(await countPayouts()).toBe(1), patience);
    await misled.close();
    isEarly = false;
    await here.devnet.mine(5);
    await start();
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    expect(await countPayouts()).toBe(1);
  });

  it("is made where payouts cannot be posted", async () => {
    const first = await here.start();
    await here.buyOnce(first, price, config);
    await first.close();
    const { database, close } = await openLedger({ url: here.ledger.url, processId: "fault" });
    await database.kysely.schema.dropTable("channel_payout_progress").execute();
    await close();
    await here.start();
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
  });
});
