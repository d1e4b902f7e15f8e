import { blockByNumber, isRevert, parseBlockHeader, type RpcRequester } from "@coinslot/chain";
import { bytes32Schema, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import { topicOf } from "../../evm/topic-of.ts";
import {
  readReceipt,
  receiptCall,
  type TransactionReceipt,
} from "../../evm/transaction-receipt.ts";
import { hexWord, uintWord } from "../../evm/word.ts";
import {
  authorizationOf,
  type DepositKey,
  type NewDeposit,
  type OpenDeposit,
} from "../../ledger/channels/channel-deposits.ts";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { findHashes } from "../../ledger/transactions/find-transactions.ts";
import { schemeOf } from "../../schemes/registry.ts";
import { readEvents } from "../watch/read-events.ts";

/** Authorization of a token's transfer: a deposit uses one up. */
const { nonceStateCall, isUsed } = schemeOf({ kind: "eip3009" });
const usedTopic = topicOf("AuthorizationUsed(address,bytes32)");
const canceledTopic = topicOf("AuthorizationCanceled(address,bytes32)");
const depositedTopic = topicOf("Deposited(bytes32,address,uint128,uint128)");

/** `balanceOf(address)`, ERC-20. */
const balanceSelector = "0x70a08231";

const wordSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]{64}$/)]);
const codeSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]);
const logsSchema = z.array(z.object({ transactionHash: bytes32Schema }));

/** A block, with its time in Unix seconds. */
export interface TimedBlock {
  number: number;
  hash: Hex;
  time: number;
}

/** The block at a height; `undefined` where the node has none yet. */
export async function readTimedBlock(
  rpc: RpcRequester,
  height: number,
): Promise<TimedBlock | undefined> {
  const header = parseBlockHeader(await rpc.request(blockByNumber(BigInt(Math.max(0, height)))));
  if (header === undefined) return undefined;
  return { number: Number(header.number), hash: header.hash, time: Number(header.timestamp) };
}

/**
 * Whether the authorization of a deposit is used or cancelled, at the head or at a block's end.
 *
 * @returns `undefined` where the token returns neither yes nor no
 * @throws RpcError, ZodError
 */
export async function isNonceUsed(
  rpc: RpcRequester,
  deposit: DepositKey,
  block?: TimedBlock,
): Promise<boolean | undefined> {
  const id = authorizationOf(deposit);
  const { target, callData } = nonceStateCall(id);
  const at = block === undefined ? "latest" : { blockHash: block.hash };
  const word = await rpc.request(
    { method: "eth_call", params: [{ to: target, data: callData }, at] },
    block === undefined ? {} : { minBlock: BigInt(block.number) },
  );
  return isUsed(id, BigInt(wordSchema.parse(word)));
}

/** The receipt of a transaction; `undefined` while no block holds it. Or the fault of a node. */
type ReadReceipt = ReturnType<typeof readReceipt>;

/**
 * Reads the receipt of the transaction of ours that carried a deposit last. A block may hold an
 * older form of it than the newest.
 *
 * @throws RpcError where no node answers, DatabaseError
 */
export async function readCarrier(
  ledger: LedgerReads,
  rpc: RpcRequester,
  { transactionId }: Pick<OpenDeposit, "transactionId">,
): Promise<ReadReceipt> {
  const hashes = transactionId === undefined ? [] : await findHashes(ledger, transactionId);
  const outcomes = await rpc.requestMany(hashes.map(receiptCall));
  const forms = hashes.map((hash, index) => readReceipt(hash, outcomes[index]));
  const faulty = forms.find(({ fault }) => fault !== undefined);
  return forms.find(({ receipt }) => receipt !== undefined) ?? faulty ?? {};
}

/**
 * The use of an authorization in the blocks up to one, by the receipt of its transaction.
 * `deposited`: the escrow's event of this channel and amount is beside the token's. `elsewhere`: it
 * was cancelled, or used without that. `undefined`: no node returns its logs, and the transaction
 * that was to carry it has none of them.
 *
 * @param options.carrier of a transaction of ours that may have executed it
 * @throws RpcError, ZodError
 */
export async function findExecution(
  rpc: RpcRequester,
  deposit: NewDepositFacts,
  { from, to, carrier = {} }: { from: number; to: number; carrier?: ReadReceipt },
): Promise<
  { kind: "deposited"; hash: Hex; blockNumber: number } | { kind: "elsewhere" } | undefined
> {
  const topics: Hex[][] = [
    [usedTopic, canceledTopic],
    [`0x${hexWord(deposit.payer)}`],
    [deposit.nonce],
  ];
  const range = { contract: deposit.token, from: BigInt(from), to: BigInt(to), topics };
  const logs = (await readEvents(rpc, range)).flatMap((each) => logsSchema.parse(each));
  const last = logs.at(-1)?.transactionHash;
  const found = last && toLowerHex(last);
  // Nodes that keep few logs, or leave some out, still have the receipts of our own.
  const isOurs = found === undefined || found === carrier.receipt?.transactionHash;
  const { receipt, fault } = isOurs ? carrier : await readReceiptOf(rpc, found);
  if (fault !== undefined) throw fault;
  if (receipt === undefined || receipt.blockNumber > to) return undefined;
  if (isDeposit(receipt, deposit)) {
    const { transactionHash, blockNumber } = receipt;
    return { kind: "deposited", hash: transactionHash, blockNumber };
  }
  return found === undefined ? undefined : { kind: "elsewhere" };
}

async function readReceiptOf(rpc: RpcRequester, hash: Hex): Promise<ReadReceipt> {
  const [outcome] = await rpc.requestMany([receiptCall(hash)]);
  return readReceipt(hash, outcome);
}

/** The facts of a deposit that its events repeat. */
type NewDepositFacts = DepositKey & Pick<NewDeposit, "contract" | "channelId" | "amount">;

function isDeposit({ logs }: TransactionReceipt, deposit: NewDepositFacts): boolean {
  const { token, payer, nonce, contract, channelId, amount } = deposit;
  const isSpent = logs.some(
    ({ address, topics }) =>
      address === token &&
      topics[0] === usedTopic &&
      topics[1] === `0x${hexWord(payer)}` &&
      topics[2] === nonce,
  );
  const isFunded = logs.some(
    ({ address, topics, data }) =>
      address === contract &&
      topics[0] === depositedTopic &&
      topics[1] === channelId &&
      data.startsWith(`0x${uintWord(amount)}`),
  );
  return isSpent && isFunded;
}

/**
 * Whether a payer has code at the head: a contract, or a delegate (EIP-7702).
 *
 * @throws RpcError, ZodError
 */
export async function hasCode(
  rpc: RpcRequester,
  { payer }: Pick<DepositKey, "payer">,
): Promise<boolean> {
  const params = [payer, "latest"];
  return codeSchema.parse(await rpc.request({ method: "eth_getCode", params })) !== "0x";
}

/**
 * Balance of a payer at the head, in the token's smallest unit.
 *
 * @throws RpcError, ZodError
 */
export async function readBalance(
  rpc: RpcRequester,
  { token, payer }: Pick<DepositKey, "token" | "payer">,
): Promise<bigint> {
  const call = { to: token, data: `${balanceSelector}${hexWord(payer)}` };
  const word = await rpc.request({ method: "eth_call", params: [call, "latest"] });
  return BigInt(wordSchema.parse(word));
}

/**
 * Tries a call alone at the newest block, with the sender and the gas of the transaction.
 *
 * @throws RpcError where no node returns a result
 */
export async function passesTrial(
  rpc: RpcRequester,
  call: { from: Hex | undefined; to: Hex; data: Hex; gasLimit: bigint },
): Promise<boolean> {
  const { from, to, data, gasLimit } = call;
  const params = {
    ...(from === undefined ? {} : { from }),
    to,
    data,
    gas: `0x${gasLimit.toString(16)}`,
  };
  try {
    await rpc.request({ method: "eth_call", params: [params, "latest"] });
    return true;
  } catch (error) {
    if (error instanceof Error && isRevert(error)) return false;
    throw error;
  }
}
