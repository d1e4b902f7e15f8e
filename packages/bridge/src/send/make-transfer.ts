import type { Address, Hash, Hex, TransactionReceipt } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import { type BridgeRequest, checkRequest } from "../bridge-request.ts";
import { findSourceChain } from "../chains/source-chain.ts";
import { requireWitnesses } from "../chains/witnesses.ts";
import { checkAffordable } from "../quote/check-affordable.ts";
import { readCost } from "../quote/data-fee.ts";
import { estimateGas, type Step } from "../quote/estimate-gas.ts";
import { maxPerGas } from "../quote/gas-price.ts";
import { planTransfer } from "../quote/plan-transfer.ts";
import { findSent, type SentTransfer } from "../track/find-sent.ts";
import { type SignedStep, sendStep } from "./send-step.ts";
import {
  type AgreedTerms,
  checkApproval,
  checkTerms,
  fitToLimit,
  readSpendingLimit,
} from "./spending-limit.ts";
import type { TransferProgress } from "./transfer-progress.ts";
import { waitUntilMined } from "./wait-until-mined.ts";

export interface BridgeCallOptions {
  /**
   * The quote to which a person or a program has agreed. It bounds token, recipient, both chains,
   * the contract, what leaves, what arrives, and `fee + bridgeFee` in all, approvals included. A
   * transfer beyond it is refused with `terms_changed`. Required unless the bridge has a
   * `maxTotalFee`.
   */
  agreed?: AgreedTerms | undefined;
  /**
   * Called with each step, and awaited. A throw ends the transfer, so the hash of a transfer can be
   * stored before it is sent.
   */
  onProgress?: ((progress: TransferProgress) => void | Promise<void>) | undefined;
  /**
   * On abort, nothing more is signed or sent, and the reason is thrown. A step reported as
   * `sending` is followed to its end all the same.
   */
  signal?: AbortSignal | undefined;
}

/** A transfer that has left the source chain. */
export interface BridgeResult {
  /** Hash of the transaction on the source chain: the input of `track`. */
  hash: Hash;
  /** Actual cost of gas, and on a rollup of data, approvals included, in the native coin. */
  fee: bigint;
  /** LayerZero's actual fee, in the native coin. */
  bridgeFee: bigint;
  /** LayerZero's id of the message. */
  guid: Hex;
  /** In the token's smallest unit. */
  amountSent: bigint;
  /** The least that arrives. */
  amountReceived: bigint;
}

/**
 * Makes a transfer: sends the missing approvals and the transfer, and waits for its block on the
 * source chain. Every check comes before the first signature. Existing approvals are not repeated,
 * so a transfer interrupted before `sending` can be run again.
 */
export async function makeTransfer(
  context: BridgeContext,
  request: BridgeRequest,
  { agreed, onProgress = () => undefined, signal }: BridgeCallOptions = {},
): Promise<BridgeResult> {
  const checked = checkRequest(request, context.chains);
  const { owner, signer } = context;
  if (signer === undefined) {
    throw new BridgeError(
      "read_only_account",
      "The bridge has an address, and nothing to sign with",
    );
  }
  const limit = readSpendingLimit({ agreed, maxTotalFee: context.maxTotalFee });
  const source = await findSourceChain(context, checked.target);
  const { client, chain } = source;
  let feeSpent = 0n;
  /** The most that was signed away for gas so far. The actual cost comes only from a node. */
  let committed = 0n;
  const makePlan = async () => {
    const planned = await planTransfer({ client, source: chain, owner, request: checked });
    if (agreed) checkTerms(planned, { agreed, committed, request: checked, source: chain });
    const plan = fitToLimit(planned, { limit, committed });
    checkAffordable(context, plan);
    return plan;
  };
  const send = async (step: Step, gas: bigint, state: "approving" | "sending") => {
    const { gasPrice } = plan;
    const { chainId } = chain;
    const onSigned = (signed: SignedStep) => onProgress({ state, ...signed });
    const terms = { chainId, step, gas, gasPrice };
    const sending = sendStep({ connection: source, signer, ...terms, signal, onSigned });
    const hash = await sending.catch(state === "sending" ? denyRefusal : denyMovement);
    const offered = gas * maxPerGas(gasPrice);
    committed += offered;
    // An approval moves no token, so an abort may end the wait for it.
    const waitSignal = state === "approving" ? signal : undefined;
    const receipt = await waitUntilMined(context, { client, hash, signal: waitSignal });
    if (receipt === undefined) throw notMined(hash, state);
    const cost = await readCost(client, receipt, { gas, gasPrice });
    feeSpent += cost;
    // A rollup's fee for data is not bounded by the transaction.
    if (cost > offered) committed += cost - offered;
    return receipt;
  };

  /**
   * A reverted send invites another one. So every node has to report it, within its timeout, of two
   * hosts at least.
   */
  const requireAgreement = async (hash: Hash) => {
    requireWitnesses(source.nodes, { claim: `The send ${hash} reverted`, hash });
    const receipts = await Promise.all(
      source.nodes.map((node) =>
        waitUntilMined(context, { client: node.client, hash, signal: undefined }),
      ),
    );
    if (receipts.every((receipt) => receipt?.status === "reverted")) return;
    const text = `Not every RPC endpoint reports the send ${hash} as reverted. Track it before sending again`;
    throw new BridgeError("outcome_unclear", text, { hash });
  };

  let plan = await makePlan();
  if (plan.approvals.length > 0) {
    for (const step of plan.approvals) {
      const gas = await estimateGas(client, { owner, step, subject: "to be given an allowance" });
      checkApproval(plan, { gas, limit, committed });
      const receipt = await send(step, gas, "approving");
      requireSuccess(receipt);
      await onProgress({ state: "approved", hash: receipt.transactionHash });
    }
    // Fees have moved on, and only now can the send be tried as it is.
    plan = await makePlan();
  }
  if (plan.sendGas === undefined) {
    const text = "The RPC endpoint does not have the approval yet: run the same transfer again";
    throw new BridgeError("rpc_unavailable", text);
  }
  const receipt = await send(plan.send, plan.sendGas, "sending");
  if (receipt.status === "reverted") await requireAgreement(receipt.transactionHash);
  const { guid, amountSent, amountReceived } = readSent(receipt, plan.contract);
  const hash = receipt.transactionHash;
  await onProgress({ state: "sent", hash, guid });
  return { hash, fee: feeSpent, bridgeFee: plan.bridgeFee, guid, amountSent, amountReceived };
}

/**
 * The transfer of our own send. A send without a revert and without the event may have moved tokens
 * all the same.
 */
function readSent(receipt: TransactionReceipt, contract: Address): SentTransfer {
  try {
    return findSent(receipt, [contract]);
  } catch (cause) {
    if (cause instanceof BridgeError && cause.code === "send_reverted") throw cause;
    const hash = receipt.transactionHash;
    const text = `The send ${hash} is in a block, but ${contract} emitted no event for it`;
    throw new BridgeError("outcome_unclear", text, { cause, hash });
  }
}

/**
 * A refused send is valid until its nonce is used. One of the hosts may have kept it, and may send
 * it later, however many refused it.
 */
function denyRefusal(error: unknown): never {
  if (!(error instanceof BridgeError) || error.code !== "rejected_by_node") throw error;
  const { hash } = error;
  const text = `${error.message}. A host that refused it may have kept it, and send it later: track it before sending again`;
  throw new BridgeError("outcome_unclear", text, { hash });
}

/** An approval moves no token, not even if a host has kept it and sends it later. */
function denyMovement(error: unknown): never {
  if (!(error instanceof BridgeError) || error.code !== "outcome_unclear") throw error;
  const { hash } = error;
  const text = `${error.message}. It is an approval, so no token has moved: run the same transfer again`;
  throw new BridgeError("rejected_by_node", text, { hash });
}

function notMined(hash: Hash, state: "approving" | "sending"): BridgeError {
  return state === "approving"
    ? new BridgeError(
        "approval_not_mined",
        `The approval ${hash} was sent, and not mined in time. No token has moved: once it is mined, or if it never is, run the same transfer again`,
        { hash },
      )
    : new BridgeError(
        "outcome_unclear",
        `The transaction ${hash} was sent, and not mined in time: it still may be. Track it before sending again`,
        { hash },
      );
}

function requireSuccess({ status, transactionHash: hash }: TransactionReceipt): void {
  if (status === "success") return;
  throw new BridgeError("approval_reverted", `The approval ${hash} reverted: no token has moved`, {
    hash,
  });
}
