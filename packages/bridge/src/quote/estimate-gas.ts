import {
  type Address,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  maxUint128,
  type PublicClient,
  slice,
  toHex,
} from "viem";
import { rehearsal } from "../../contracts/rehearsal.generated.ts";
import { BridgeError } from "../bridge-error.ts";
import { askChain } from "../chains/ask-chain.ts";
import { findNodeAnswer } from "../chains/node-answer.ts";
import { describeRevert, findRevertData } from "../chains/revert-reason.ts";

/** One transaction of an account. */
export interface Step {
  to: Address;
  value: bigint;
  data: Hex;
}

/**
 * What the send of an OFT takes at most where gas is reckoned as on Ethereum, with what the message libraries of
 * LayerZero do in it: some 250,000 to 350,000.
 */
export const sendGasBound = 700_000n;

/** What an approval takes at most where gas is reckoned as on Ethereum: some 30,000 to 60,000, with proxies. */
export const approvalGasBound = 150_000n;

/** What a transaction costs before it does anything. */
const transactionGas = 21_000n;

/** Nobody's address: it has money only where a node pretends so, as it is asked to. */
const pretender = slice(keccak256(toHex("coinslot: rehearsal of a transfer")), 12);

/** Gas of one transaction, with a fifth more than the node says: what it does may change until it is mined. */
export async function estimateGas(
  client: PublicClient,
  options: { owner: Address; step: Step; subject: string },
): Promise<bigint> {
  const { owner, step, subject } = options;
  return addRoom(await askChain(subject, client.estimateGas({ account: owner, ...step })));
}

/**
 * Gas of several transactions of one account of which the later ones need what the earlier ones do, such as approvals
 * and a send. The node is asked to pretend that the account had the code of a contract that does one after the other,
 * and the money to do it. `undefined`: the node does not do such things.
 *
 * @throws BridgeError `refused_by_contract` if one of them would revert; `rpc_unavailable`
 */
export async function rehearseGas(
  client: PublicClient,
  options: { owner: Address; steps: readonly Step[]; subject: string },
): Promise<bigint | undefined> {
  const { owner, steps, subject } = options;
  const { abi } = rehearsal;
  try {
    const gas = await client.estimateGas({
      account: pretender,
      to: owner,
      // A node that ignores the pretence cannot move this, and objects instead of answering something else.
      value: 1n,
      data: encodeFunctionData({ abi, functionName: "run", args: [steps] }),
      stateOverride: [
        { address: owner, code: rehearsal.deployedBytecode, balance: maxUint128 },
        { address: pretender, balance: maxUint128 },
      ],
    });
    return addRoom(gas) + BigInt(steps.length) * transactionGas;
  } catch (error) {
    const reason = findStepFailure(error);
    if (reason !== undefined) {
      const text = `The contract refuses ${subject}: ${describeRevert(reason)}`;
      throw new BridgeError("refused_by_contract", text);
    }
    if (findNodeAnswer(error) !== undefined) return undefined;
    return askChain(subject, Promise.reject(error));
  }
}

/**
 * Gas that a send and so many approvals do not exceed, for nodes that cannot try them. Not every chain reckons gas as
 * Ethereum does: Arbitrum adds the cost of data on another chain, Mantle its price, MegaETH that of storage. By how
 * much is seen by what the emptiest of all transactions takes there, and the bound is raised as much.
 *
 * @throws BridgeError `rpc_unavailable`
 */
export async function boundGas(
  client: PublicClient,
  { approvals }: { approvals: number },
): Promise<bigint> {
  const empty = { account: pretender, to: pretender, value: 0n };
  const needed = await askChain("the gas of an empty transaction", client.estimateGas(empty));
  const bound = sendGasBound + BigInt(approvals) * approvalGasBound;
  if (needed <= transactionGas) return bound;
  return (bound * needed + transactionGas - 1n) / transactionGas;
}

/** What the step reverted with that the rehearsal failed at. */
function findStepFailure(error: unknown): Hex | undefined {
  const data = findRevertData(error);
  if (data === undefined || data === "0x") return undefined;
  try {
    return decodeErrorResult({ abi: rehearsal.abi, data }).args[1];
  } catch {
    return undefined;
  }
}

function addRoom(gas: bigint): bigint {
  return (gas * 6n) / 5n;
}
