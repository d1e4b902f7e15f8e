import {
  type Address,
  type Hex,
  type PublicClient,
  parseAbi,
  serializeTransaction,
  type TransactionReceipt,
} from "viem";
import * as z from "zod";
import { BridgeError } from "../bridge-error.ts";
import { askChain } from "../chains/ask-chain.ts";
import type { Step } from "./estimate-gas.ts";
import { type GasPrice, maxPerGas } from "./gas-price.ts";

/** The GasPriceOracle that every rollup of the OP stack has from its first block on. */
export const opStackOracle: Address = "0x420000000000000000000000000000000000000F";

/** The GasPriceOracle of Morph. The functions used here are the same. */
export const morphOracle: Address = "0x530000000000000000000000000000000000000f";

const oracleAbi = parseAbi([
  "function getL1Fee(bytes unsigned) view returns (uint256)",
  "function getOperatorFee(uint256 gasUsed) view returns (uint256)",
]);

const quantitySchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);

/**
 * viem passes unknown members on as the node has written them, and gives `null` for absent ones.
 */
const costSchema = z.object({
  gasUsed: z.bigint().optional().catch(undefined),
  effectiveGasPrice: z.bigint().optional().catch(undefined),
  l1Fee: z.union([z.bigint(), quantitySchema]).optional().catch(undefined),
});

/** More than any account has sent: a longer number costs at least as much as the real one. */
const anyNonce = 2 ** 32 - 1;

/**
 * Upper bound of a rollup's fees besides gas, in the native coin. They are for the publication of
 * the transactions' data on the chain below, and for its operator. Zero on every chain that takes
 * nothing but gas. Arbitrum and its kin count their data as gas, which their nodes include when
 * they estimate.
 *
 * The chain itself shows that it is such a rollup: only its founders can put code at an oracle's
 * address. So no table has to follow each upgrade.
 *
 * @throws BridgeError `refused_by_contract` where the oracle does not answer; `rpc_unavailable`
 */
export async function readDataFee(
  client: PublicClient,
  options: { chainId: number; steps: readonly Step[]; gas: bigint; gasPrice: GasPrice },
): Promise<bigint> {
  const { chainId, steps, gas, gasPrice } = options;
  const oracle = await findOracle(client);
  if (oracle === undefined) return 0n;
  const fees = steps.map(async (step, index) => {
    const unsigned = serializeTransaction({ chainId, nonce: anyNonce, gas, ...step, ...gasPrice });
    const l1Fee = await readL1Fee(client, oracle, unsigned);
    // One part covers the gas of all transactions, and one is the same for each.
    const operatorFee = await readOperatorFee(client, oracle, index === 0 ? gas : 0n);
    // The L1 fee follows the base fee of the chain below. Half as much again lasts for three full
    // blocks there.
    return (l1Fee * 3n) / 2n + operatorFee;
  });
  return (await Promise.all(fees)).reduce((sum, fee) => sum + fee, 0n);
}

/**
 * Actual cost of a transaction, in the native coin: its gas, and a rollup's fees for data and
 * operator. A value that the node leaves out counts as the transaction's maximum offer. It never
 * throws: an unknown cost undoes nothing.
 *
 * @param offered the gas and the price that the transaction was signed with
 */
export async function readCost(
  client: PublicClient,
  receipt: TransactionReceipt,
  offered: { gas: bigint; gasPrice: GasPrice },
): Promise<bigint> {
  const { gasUsed, effectiveGasPrice, l1Fee } = costSchema.parse(receipt);
  const gas = gasUsed ?? offered.gas;
  const ofGas = gas * (effectiveGasPrice ?? maxPerGas(offered.gasPrice));
  if (l1Fee === undefined) return ofGas;
  return ofGas + l1Fee + (await readOperatorFee(client, opStackOracle, gas).catch(() => 0n));
}

async function findOracle(client: PublicClient): Promise<Address | undefined> {
  const [opStackCode, morphCode] = await Promise.all(
    [opStackOracle, morphOracle].map((address) =>
      askChain("whether it is a rollup", client.getCode({ address })),
    ),
  );
  if (opStackCode !== undefined) return opStackOracle;
  return morphCode === undefined ? undefined : morphOracle;
}

function readL1Fee(client: PublicClient, address: Address, unsigned: Hex): Promise<bigint> {
  const call = { address, abi: oracleAbi, functionName: "getL1Fee", args: [unsigned] } as const;
  return askChain("the data fee", client.readContract(call));
}

/** Zero where there is no such fee: before the upgrade Isthmus, and on Morph. */
async function readOperatorFee(
  client: PublicClient,
  address: Address,
  gas: bigint,
): Promise<bigint> {
  const call = { address, abi: oracleAbi, functionName: "getOperatorFee", args: [gas] } as const;
  try {
    return await askChain("the operator's fee", client.readContract(call));
  } catch (error) {
    if (error instanceof BridgeError && error.code === "refused_by_contract") return 0n;
    throw error;
  }
}
