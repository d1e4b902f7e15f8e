import { systemClock } from "@coinslot/chain";
import { type ChannelConfig, channelContracts } from "@coinslot/protocol";
import { type Hex, isHex, keccak256, numberToHex, parseGwei, parseTransaction } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import {
  type NodeAnswer,
  type NodeCall,
  type NodeProxy,
  startNodeProxy,
} from "../../testing/node-proxy.ts";

type Lie = (call: NodeCall, ask: () => Promise<NodeAnswer>) => Promise<NodeAnswer>;

const delaySeconds = 900;
const baseFeePerGas = parseGwei("1");

describe("a withdrawal behind a node that keeps claims off the chain", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  let lie: Lie | undefined;
  let aheadMs: number;
  /** Transactions that the second node has received. */
  let sent: Hex[];
  let nodes: NodeProxy[];

  beforeEach(async () => {
    lie = undefined;
    aheadMs = 0;
    sent = [];
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf();
    const { rpcUrl } = here.devnet;
    nodes = [
      await startNodeProxy(rpcUrl, (call, ask) => (lie ? lie(call, ask) : ask())),
      await startNodeProxy(rpcUrl, (call, ask) => {
        const [raw] = call.params;
        if (call.method === "eth_sendRawTransaction" && isHex(raw)) sent.push(raw);
        return ask();
      }),
    ];
    await channels.deposit(config, 10_000n);
  });

  afterEach(async () => {
    await here.stop();
    await Promise.all(nodes.map((node) => node.close()));
  });

  /** Sells by the channel, lets the first node lie, and begins the withdrawal. */
  async function begin(lying: Lie, { maxFeePerGas = parseGwei("50") } = {}) {
    const facilitator = await here.start(
      {},
      {
        network: { rpcUrls: nodes.map(({ url }) => url), fees: { maxFeePerGas } },
        clock: { ...systemClock, now: () => performance.now() + aheadMs },
        now: () => Date.now() + aheadMs,
      },
    );
    await here.buyOnce(facilitator, price, config);
    lie = lying;
    await channels.withdraw(config, 10_000n);
    /** Passes the delay in small steps. Returns the seconds after which all was claimed. */
    return async function claimedAfter(): Promise<number | undefined> {
      for (let passed = 0; passed < delaySeconds - 30; passed += 60) {
        if ((await channels.stateOf(config)).totalClaimed === price) return passed;
        aheadMs += 60_000;
        await here.devnet.client.increaseTime({ seconds: 60 });
        const until = (await here.devnet.client.getBlockNumber()) + 1n;
        await vi.waitFor(async () => {
          await here.devnet.client.setNextBlockBaseFeePerGas({ baseFeePerGas });
          await here.devnet.mine(1);
          const block = await here.metric(facilitator, "coinslot_channels_watched_block");
          expect(block).toBeGreaterThanOrEqual(Number(until));
        }, patience);
      }
      return undefined;
    };
  }

  /** Takes transactions, passes none on, and shows each in the newest block. */
  function swallow(): Lie {
    const taken = new Map<unknown, { blockNumber: bigint; blockHash: Hex }>();
    return async ({ method, params }, ask) => {
      const [first] = params;
      if (method === "eth_sendRawTransaction" && isHex(first)) {
        const { number, hash } = await here.devnet.client.getBlock();
        taken.set(keccak256(first), { blockNumber: number, blockHash: hash });
        return { result: keccak256(first) };
      }
      const block = method === "eth_getTransactionReceipt" ? taken.get(first) : undefined;
      if (block === undefined) return ask();
      return {
        result: {
          transactionHash: first,
          transactionIndex: "0x0",
          blockHash: block.blockHash,
          blockNumber: numberToHex(block.blockNumber),
          from: here.devnet.accounts.relayer.address,
          to: channelContracts.settlement,
          cumulativeGasUsed: "0x15f90",
          gasUsed: "0x15f90",
          effectiveGasPrice: "0x3b9aca00",
          contractAddress: null,
          logs: [],
          logsBloom: `0x${"0".repeat(512)}`,
          status: "0x1",
          type: "0x2",
        },
      };
    };
  }

  /** Shows this base fee and this tip. */
  function showFees(baseFee: bigint, tip: bigint): Lie {
    return async ({ method }, ask) => {
      if (method === "eth_maxPriorityFeePerGas" || method === "eth_gasPrice") {
        return { result: numberToHex(tip) };
      }
      const answer = await ask();
      if (method !== "eth_getBlockByNumber" || !("result" in answer)) return answer;
      const block = z.looseObject({}).nullable().parse(answer.result);
      return { result: block && { ...block, baseFeePerGas: numberToHex(baseFee) } };
    };
  }

  it("is answered where the node takes the claim, passes it on to none, and shows a receipt", async () => {
    const claimedAfter = await begin(swallow());
    expect(await claimedAfter()).toBeDefined();
  });

  it("is answered where the node also understates base fee and tip", async () => {
    const [take, show] = [swallow(), showFees(1n, 1n)];
    const claimedAfter = await begin((call, ask) => take(call, () => show(call, ask)));
    expect(await claimedAfter()).toBeDefined();
    const [claim] = sent.map((raw) => parseTransaction(raw));
    expect(claim?.maxFeePerGas).toBeGreaterThanOrEqual(baseFeePerGas);
    // As the other node names it, and nothing near the cap.
    expect(claim?.maxPriorityFeePerGas).toBe(
      await here.devnet.client.estimateMaxPriorityFeePerGas(),
    );
    expect(claim?.maxFeePerGas).toBeLessThan(parseGwei("10"));
  });

  /** Leaves the relayer with gas money for few claims: its balance is read for each. */
  async function impoverish() {
    const { client, accounts } = here.devnet;
    await client.setBalance({ address: accounts.relayer.address, value: parseGwei("20000000") });
  }

  it("is answered where the node overstates the base fee beyond what the relayer can pay", async () => {
    await impoverish();
    const claimedAfter = await begin(showFees(parseGwei("900000"), 1n), {
      maxFeePerGas: parseGwei("1000000"),
    });
    expect(await claimedAfter()).toBeDefined();
  });

  it("is answered where the node shows the relayer's balance as 0", async () => {
    await impoverish();
    const claimedAfter = await begin(async ({ method }, ask) =>
      method === "eth_getBalance" ? { result: "0x0" } : ask(),
    );
    expect(await claimedAfter()).toBeDefined();
  });

  it("is answered where the other node is dead", async () => {
    await nodes[1]?.close();
    const claimedAfter = await begin((_, ask) => ask());
    expect(await claimedAfter()).toBeDefined();
  });
});
