import { RpcError, type RpcRequester } from "@coinslot/chain";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import type { Inclusion } from "../../ledger/payments/ledger-payment.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  type ExpectedTransfer,
  readOutcomes,
  wordOf,
} from "./read-outcomes.ts";
import { parseReceipt, receiptCall } from "./transaction-receipt.ts";

/** What the chain's events say of an authorization, whoever submitted it. */
export type Execution =
  /** Its exact Transfer stands in this block. */
  | { outcome: "executed"; inclusion: Inclusion }
  /** Used without its exact Transfer, or cancelled, in this block: it can never pay any more. */
  | { outcome: "spent"; blockNumber: bigint }
  /** Used, and the node has no receipt of that: its block has left the chain, or comes there later. */
  | { outcome: "unknown" };

const logsSchema = z.array(
  z.object({
    topics: z.array(z.templateLiteral(["0x", z.string()])),
    transactionHash: z.templateLiteral(["0x", z.string()]),
    blockNumber: z
      .string()
      .regex(/^0x[0-9a-f]{1,16}$/i)
      .transform(BigInt),
  }),
);

/** Nodes limit the blocks of one question; most grant this many. */
const blocksPerQuestion = 1_000n;

/**
 * Looks for authorizations that somebody executed or cancelled, in some blocks. One question for each
 * token and range of blocks, however many payments there are. A payment that is not found is not in
 * the answer.
 *
 * @throws RpcError when the chain cannot be asked, ZodError when it answers rubbish.
 */
export async function findExecutions(options: {
  rpc: RpcRequester;
  payments: readonly OrderedPayment[];
  fromBlock: bigint;
  toBlock: bigint;
}): Promise<Map<OrderedPayment, Execution>> {
  const { rpc, payments, fromBlock, toBlock } = options;
  const found = new Map<OrderedPayment, Execution>();
  for (const asset of new Set(payments.map(({ payment }) => payment.authorization.asset))) {
    const ofAsset = payments.filter(({ payment }) => payment.authorization.asset === asset);
    const marks = await findMarks({ rpc, asset, payments: ofAsset, fromBlock, toBlock });
    for (const [key, execution] of await readMarks({ rpc, payments: ofAsset, marks })) {
      found.set(key, execution);
    }
  }
  return found;
}

/** `findExecutions`, where other payments go on meanwhile: `undefined` when a node cannot be asked, or answers rubbish. */
export async function tryToFindExecutions(
  options: Parameters<typeof findExecutions>[0],
): Promise<Awaited<ReturnType<typeof findExecutions>> | undefined> {
  try {
    return await findExecutions(options);
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}

/** What payments expect to find in logs. */
export function expectedTransfer({ payment, order }: OrderedPayment): ExpectedTransfer {
  const { asset, payer, nonce } = payment.authorization;
  return { asset, payer, nonce, payTo: order.payTo, value: payment.value };
}

interface Mark {
  payment: OrderedPayment;
  isUse: boolean;
  transactionHash: Hex;
  blockNumber: bigint;
}

async function findMarks(options: {
  rpc: RpcRequester;
  asset: Address;
  payments: readonly OrderedPayment[];
  fromBlock: bigint;
  toBlock: bigint;
}): Promise<Mark[]> {
  const { rpc, asset, payments, fromBlock, toBlock } = options;
  const byKey = new Map(
    payments.map((each) => {
      const { payer, nonce } = each.payment.authorization;
      return [wordOf(payer) + nonce, each];
    }),
  );
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    [...new Set(payments.map(({ payment }) => wordOf(payment.authorization.payer)))],
    [...new Set(payments.map(({ payment }) => payment.authorization.nonce))],
  ];
  const marks: Mark[] = [];
  for (let from = fromBlock; from <= toBlock; from += blocksPerQuestion) {
    const last = from + blocksPerQuestion - 1n;
    const to = last < toBlock ? last : toBlock;
    const filter = { address: asset, topics, fromBlock: quantity(from), toBlock: quantity(to) };
    const answer = await rpc.request({ method: "eth_getLogs", params: [filter] }, { minBlock: to });
    for (const { topics: found, transactionHash, blockNumber } of logsSchema.parse(answer)) {
      const payment = byKey.get(`${found[1]}${found[2]}`.toLowerCase());
      if (payment === undefined) continue;
      const isUse = found[0]?.toLowerCase() === authorizationUsedTopic;
      marks.push({ payment, isUse, transactionHash: toLowerHex(transactionHash), blockNumber });
    }
  }
  return marks;
}

async function readMarks(options: {
  rpc: RpcRequester;
  payments: readonly OrderedPayment[];
  marks: readonly Mark[];
}): Promise<Map<OrderedPayment, Execution>> {
  const { rpc, marks } = options;
  const found = new Map<OrderedPayment, Execution>();
  for (const { payment, blockNumber } of marks)
    found.set(payment, { outcome: "spent", blockNumber });
  const uses = marks.filter(({ isUse }) => isUse);
  const blocks = new Map(uses.map((use) => [use.transactionHash, use.blockNumber]));
  for (const [hash, minBlock] of blocks) {
    const receipt = parseReceipt(await rpc.request(receiptCall(hash), { minBlock }));
    const used = uses.filter(({ transactionHash }) => transactionHash === hash);
    if (receipt === undefined) {
      for (const { payment } of used) found.set(payment, { outcome: "unknown" });
      continue;
    }
    const expected = used.map(({ payment }) => ({ payment, ...expectedTransfer(payment) }));
    for (const [{ payment }, outcome] of readOutcomes(receipt.logs, expected)) {
      if (outcome !== "executed") continue;
      const { transactionHash, blockNumber, blockHash } = receipt;
      found.set(payment, {
        outcome: "executed",
        inclusion: { transactionHash, blockNumber, blockHash },
      });
    }
  }
  return found;
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}
