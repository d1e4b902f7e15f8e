import { RpcError, type RpcRequester } from "@coinslot/chain";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";

/** A `Transfer` of a token, as a node returns it. Hex in lower case. */
export interface TransferLog {
  asset: Address;
  from: Address;
  to: Address;
  amount: bigint;
  transaction: Hex;
  blockNumber: number;
  logIndex: number;
  /** Of the block, where the source names it. Unix milliseconds. */
  timestampMs?: number | undefined;
}

/** `Transfer(address indexed from, address indexed to, uint256 value)`, ERC-20. */
const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** Blocks of one request: halved where a node refuses, doubled where it answers. */
const firstBlocks = 1_000;
const maxBlocks = 10_000;
/** Addresses of one request. */
const maxAccounts = 100;

const hex = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]).transform(toLowerHex);
const logsSchema = z.array(
  z.object({
    address: hex,
    topics: z.array(hex),
    data: hex,
    blockNumber: hex,
    transactionHash: hex,
    logIndex: hex,
  }),
);
const receiptSchema = z.object({ blockNumber: hex, logs: logsSchema }).nullish();

/** Transfers among logs. Those of other tokens, such as ERC-721, have other parts. */
function readTransfers(logs: z.infer<typeof logsSchema>): TransferLog[] {
  return logs.flatMap(({ address, topics, data, ...place }) => {
    const [topic, from, to, more] = topics;
    const isTransfer = topic === transferTopic && from?.length === 66 && to?.length === 66;
    if (!isTransfer || more !== undefined || data.length !== 66) return [];
    return {
      asset: address,
      from: toLowerHex(`0x${from.slice(26)}`),
      to: toLowerHex(`0x${to.slice(26)}`),
      amount: BigInt(data),
      transaction: place.transactionHash,
      blockNumber: Number(place.blockNumber),
      logIndex: Number(place.logIndex),
    };
  });
}

/** The transfers of a transaction, and all topics in it; none where no block holds it. */
export async function readTransaction(
  rpc: RpcRequester,
  transaction: Hex,
): Promise<{ transfers: TransferLog[]; topics: ReadonlySet<Hex> }> {
  const answer = await rpc.request({ method: "eth_getTransactionReceipt", params: [transaction] });
  const logs = receiptSchema.parse(answer)?.logs ?? [];
  const topics = new Set(logs.flatMap((log) => log.topics));
  return { transfers: readTransfers(logs), topics };
}

/** Number of the newest block with so many on top; 0 for a young chain. */
export async function readFinalBlock(rpc: RpcRequester, depth: number): Promise<number> {
  const head = hex.parse(await rpc.request({ method: "eth_blockNumber", params: [] }));
  return Math.max(0, Number(head) - depth);
}

/** Accounts whose transfers are read: recipients of sales, and floats that pay refunds. */
export interface Watched {
  assets: readonly Address[];
  to: readonly Address[];
  from: readonly Address[];
}

/** Reads transfers by ranges of blocks. The ranges fit what the node answers. */
export function createTransferReader(rpc: RpcRequester) {
  let blocks = firstBlocks;

  /** The transfers of some blocks, range by range; each with its last block. */
  return async function* readBlocks(
    range: { from: number; to: number },
    watched: Watched,
  ): AsyncGenerator<{ transfers: TransferLog[]; to: number }, void, void> {
    for (let from = range.from; from <= range.to; ) {
      const to = Math.min(range.to, from + blocks - 1);
      try {
        const transfers = await readRange(rpc, { from, to }, watched);
        blocks = Math.min(maxBlocks, blocks * 2);
        from = to + 1;
        yield { transfers, to };
      } catch (error) {
        if (!(error instanceof RpcError) || from === to) throw error;
        blocks = Math.max(1, Math.floor((to - from + 1) / 2));
      }
    }
  };
}

async function readRange(
  rpc: RpcRequester,
  range: { from: number; to: number },
  { assets, to, from }: Watched,
): Promise<TransferLog[]> {
  const filters = [
    ...chunks(to).map((accounts) => [transferTopic, null, accounts.map(wordOf)]),
    ...chunks(from).map((accounts) => [transferTopic, accounts.map(wordOf), null]),
  ];
  /** A transfer from a float to a recipient of sales is found twice. */
  const found = new Map<string, TransferLog>();
  for (const topics of filters) {
    const filter = {
      address: assets,
      fromBlock: `0x${range.from.toString(16)}`,
      toBlock: `0x${range.to.toString(16)}`,
      topics,
    };
    const options = { minBlock: BigInt(range.to) };
    const answer = await rpc.request({ method: "eth_getLogs", params: [filter] }, options);
    for (const transfer of readTransfers(logsSchema.parse(answer))) {
      found.set(`${transfer.transaction}/${transfer.logIndex}`, transfer);
    }
  }
  return [...found.values()];
}

/** An address as it stands in a topic. */
function wordOf(address: Address): Hex {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}

function chunks<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / maxAccounts) }, (_, index) =>
    items.slice(index * maxAccounts, (index + 1) * maxAccounts),
  );
}
