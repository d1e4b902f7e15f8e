import type { Devnet } from "@coinslot/devnet";
import { type Hex, isHex, keccak256, stringToHex } from "viem";
import { vi } from "vitest";
import * as z from "zod";
import { type NodeAnswer, type NodeCall, type NodeProxy, startNodeProxy } from "./node-proxy.ts";

const receiptSchema = z.looseObject({
  blockNumber: z.string(),
  logs: z.array(z.looseObject({ topics: z.array(z.string()) })),
});
type Receipt = z.infer<typeof receiptSchema>;

/** State of a node that makes blocks up. */
export interface AheadLies {
  /** Number of made-up blocks above those of the chain. */
  ahead: bigint;
  /** The next transaction leaves the chain, and stands in the newest of them. */
  isArmed: boolean;
}

/** A node that shows more blocks than its chain has. */
export interface NodeAhead extends NodeProxy {
  /** An honest node, which does not get the taken transaction while the lie goes on. */
  honestUrl: string;
  /** The transaction that it has put into one of them, as it was signed. */
  taken(): Hex | undefined;
  /** Number of answers that show its authorization as used. */
  shownAsUsed(): number;
}

const quantity = (number: bigint): Hex => `0x${number.toString(16)}`;
const hashOf = (number: bigint) => keccak256(stringToHex(`made up ${number}`));
const wordOf = (number: bigint): Hex => `0x${number.toString(16).padStart(64, "0")}`;

/** Starts a node that is honest until `lies` say otherwise. */
export async function startNodeAhead(devnet: Devnet, lies: AheadLies): Promise<NodeAhead> {
  const { client, rpcUrl } = devnet;
  let taken: { raw: Hex; hash: Hex; number: bigint; receipt: Receipt } | undefined;
  let taking: { raw: Hex; hash: Promise<Hex> } | undefined;
  let shown = 0;
  const readHead = () => client.getBlockNumber({ cacheTime: 0 });

  async function readReceipt(hash: Hex): Promise<Receipt | null> {
    const call = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [hash] };
    const headers = { "content-type": "application/json" };
    const response = await fetch(rpcUrl, { method: "POST", headers, body: JSON.stringify(call) });
    return z.object({ result: receiptSchema.nullable() }).parse(await response.json()).result;
  }

  async function take(raw: Hex): Promise<Hex> {
    const hash = await client.sendRawTransaction({ serializedTransaction: raw });
    const receipt = await vi.waitFor(async () => receiptSchema.parse(await readReceipt(hash)), {
      timeout: 60_000,
    });
    // Tests mine meanwhile: it leaves the chain with all blocks on top.
    while ((await readReceipt(hash)) !== null) {
      await devnet.reorg({ depth: Number((await readHead()) - BigInt(receipt.blockNumber)) + 1 });
    }
    const number = (await readHead()) + lies.ahead;
    const place = { blockNumber: quantity(number), blockHash: hashOf(number) };
    const logs = receipt.logs.map((log) => ({ ...log, ...place }));
    taken = { raw, hash, number, receipt: { ...receipt, ...place, logs } };
    return hash;
  }

  /** The hash of the taken transaction, for its sender. The chain does not get it a second time. */
  function holdBack(raw: unknown): Promise<Hex> | undefined {
    if (!isHex(raw)) return undefined;
    if (lies.isArmed) {
      lies.isArmed = false;
      taking = { raw, hash: take(raw) };
    }
    return lies.ahead > 0n && taking?.raw === raw ? taking.hash : undefined;
  }

  async function headerOf(number: bigint, head: bigint) {
    const { hash } = await client.getBlock({ blockNumber: head });
    return {
      number: quantity(number),
      hash: hashOf(number),
      parentHash: number === head + 1n ? hash : hashOf(number - 1n),
      timestamp: quantity(BigInt(Math.floor(Date.now() / 1_000))),
      baseFeePerGas: "0x7",
      gasLimit: "0x1c9c380",
    };
  }

  /** The taken transaction's logs that a query asks for. */
  function logsOf({ params: [filter] }: NodeCall) {
    const { fromBlock, toBlock, topics } = filterSchema.parse(filter);
    const { number = -1n, receipt } = taken ?? {};
    if (number < BigInt(fromBlock) || number > BigInt(toBlock)) return [];
    return (receipt?.logs ?? []).filter((log) =>
      topics.every((wanted, index) => [wanted].flat().includes(log.topics[index] ?? "")),
    );
  }

  async function send(raw: unknown, ask: () => Promise<NodeAnswer>): Promise<NodeAnswer> {
    const held = holdBack(raw);
    return held === undefined ? ask() : { result: await held };
  }

  const honest = await startNodeProxy(rpcUrl, ({ method, params }, ask) =>
    method === "eth_sendRawTransaction" && !lies.isArmed ? send(params[0], ask) : ask(),
  );
  const proxy = await startNodeProxy(rpcUrl, async (call, ask) => {
    const { method, params } = call;
    const [first, second] = params;
    if (lies.ahead === 0n) return ask();
    const head = await readHead();
    const isAbove = (block: unknown) => isHex(block) && BigInt(block) > head;
    switch (method) {
      case "eth_blockNumber":
        return { result: quantity(head + lies.ahead) };
      case "eth_getBlockByNumber":
        if (first === "latest") return { result: await headerOf(head + lies.ahead, head) };
        return isHex(first) && isAbove(first)
          ? { result: await headerOf(BigInt(first), head) }
          : ask();
      case "eth_sendRawTransaction":
        return send(first, ask);
      case "eth_getTransactionReceipt":
        return first === taken?.hash ? { result: taken?.receipt } : ask();
      case "eth_getLogs": {
        const logs = logsOf(call);
        return logs.length > 0 ? { result: logs } : ask();
      }
      case "eth_call": {
        const { data = "" } = callSchema.parse(first);
        const nonces = taken?.receipt.logs.flatMap(({ topics }) => topics[2]?.slice(2) ?? []);
        const isUsed =
          data.startsWith(stateSelector) && nonces?.some((each) => data.includes(each));
        if (isUsed) {
          shown += 1;
          return { result: wordOf(1n) };
        }
        call.params = [first, isAbove(second) ? "latest" : second, ...params.slice(2)];
        return ask();
      }
      default:
        if (isAbove(second)) call.params = [first, "latest"];
        return ask();
    }
  });
  return {
    ...proxy,
    honestUrl: honest.url,
    async close() {
      await Promise.all([proxy.close(), honest.close()]);
    },
    taken: () => taken?.raw,
    shownAsUsed: () => shown,
  };
}

const filterSchema = z.object({
  fromBlock: z.string(),
  toBlock: z.string(),
  topics: z.array(z.union([z.string(), z.array(z.string())])),
});
const callSchema = z.looseObject({ data: z.string().optional() });
/** `authorizationState(address,bytes32)`, EIP-3009. */
const stateSelector = "0xe94a0102";
