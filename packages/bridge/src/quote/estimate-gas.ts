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
 * Upper bound of the gas of an OFT's send on a chain with Ethereum's gas schedule. A send takes
 * some 250,000 to 350,000, LayerZero's message libraries included.
 */
export const sendGasBound = 700_000n;

/**
 * Upper bound of the gas of an approval on a chain with Ethereum's gas schedule. An approval takes
 * some 30,000 to 60,000, with proxies.
 */
export const approvalGasBound = 150_000n;

/** Base gas of an empty transaction. */
const transactionGas = 21_000n;

/** An address without a key. It has money only by a state override in a node's call. */
const pretender = slice(keccak256(toHex("coinslot: rehearsal of a transfer")), 12);

/**
 * Gas of one transaction, with a fifth more than the node's estimate: the state may change until it
 * is mined.
 */
export async function estimateGas(
  client: PublicClient,
  options: { owner: Address; step: Step; subject: string },
): Promise<bigint> {
  const { owner, step, subject } = options;
  return addRoom(await askChain(subject, client.estimateGas({ account: owner, ...step })));
}

/**
 * Gas of several transactions of one account that depend on earlier ones, such as approvals and a
 * send. A state override gives the account a contract's code that runs them in turn, and the money
 * for it. `undefined`: the node has no state overrides.
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
      // A node that ignores the override cannot move this value, and objects instead of answering
      // something else.
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
 * Upper bound of the gas of a send and a number of approvals, for nodes that cannot try them. Gas
 * schedules differ: Arbitrum adds the cost of data on another chain, Mantle its price, MegaETH that
 * of storage. The gas of an empty transaction shows the factor, and the bound is raised by it.
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

/** Revert data of the step that the rehearsal failed at. */
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
