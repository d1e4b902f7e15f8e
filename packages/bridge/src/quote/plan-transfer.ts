import { type Address, erc20Abi, isAddressEqual, type PublicClient } from "viem";
import type { CheckedRequest } from "../bridge-request.ts";
import { askChain } from "../chains/ask-chain.ts";
import { type ContractKind, contractKinds, type EvmBridgeChain } from "../chains/bridge-chain.ts";
import { findContract } from "../chains/find-contract.ts";
import { oftAbi } from "../chains/oft-abi.ts";
import { readDataFee } from "./data-fee.ts";
import { boundGas, estimateGas, rehearseGas, type Step } from "./estimate-gas.ts";
import { type GasQuote, maxPerGas, readGasPrice } from "./gas-price.ts";
import { planApprovals } from "./plan-approvals.ts";
import { type AmountQuote, quoteAmounts } from "./quote-amounts.ts";
import { encodeSend, toSendParam } from "./send-param.ts";

/** All facts of a transfer that are needed before the first signature. */
export interface TransferPlan extends AmountQuote, GasQuote {
  /** The contract it is sent through. */
  contract: Address;
  /** The contract's network; `undefined`: it is not in the table. */
  kind: ContractKind | undefined;
  /** Approvals that are still needed, in order. */
  approvals: readonly Step[];
  send: Step;
  /**
   * Gas of the send, where it can be tried as it is: no approval or money is missing.
   */
  sendGas: bigint | undefined;
  /** The most gas that all these steps take. */
  gas: bigint;
  /** The most that a rollup takes for the data of all these steps, and for its operator. */
  dataFee: bigint;
  /** The most that all these steps cost but for LayerZero's fee: gas and `dataFee`. */
  fee: bigint;
  /** Source of the gas: a node's estimate, or the bound that holds for any transfer. */
  feeBasis: "estimate" | "bound";
  /** LayerZero's fee, in the native coin. */
  bridgeFee: bigint;
  tokenBalance: bigint;
  nativeBalance: bigint;
  /**
   * The amount's share of the native balance: on Stable, both are the same money. Zero elsewhere.
   */
  amountInNative: bigint;
}

/** From the 6 decimals of USDT0 to the 18 of a native coin. */
const nativeUnitsPerTokenUnit = 1_000_000_000_000n;

/**
 * Reads all data for a transfer from the source chain. Changes nothing, and needs no allowance.
 *
 * @throws BridgeError `no_route`, `invalid_contract`, `amount_too_small`, `amount_too_large`,
 * `loss_too_large`, `refused_by_contract`, `rpc_unavailable`
 */
export async function planTransfer(options: {
  client: PublicClient;
  source: EvmBridgeChain;
  owner: Address;
  request: CheckedRequest;
}): Promise<TransferPlan> {
  const { client, source, owner, request } = options;
  const { target, token, amount, to, oft: given } = request;
  const contract = await findContract({ client, source, target, token, given });
  const subject = `to send ${amount} of ${token} to ${target.name}`;
  const dstEid = target.eid;

  const amounts = await quoteAmounts(client, { contract, dstEid, to, amount, subject });
  const { amountSent, amountReceived } = amounts;
  const param = toSendParam({ dstEid, to, amount, minAmount: amountReceived });
  const quoteSend = {
    address: contract,
    abi: oftAbi,
    functionName: "quoteSend",
    args: [param, false],
  } as const;
  const balanceOf = {
    address: token,
    abi: erc20Abi,
    functionName: "balanceOf",
    args: [owner],
  } as const;
  const [{ nativeFee }, tokenBalance, nativeBalance, approvals, gasQuote] = await Promise.all([
    askChain(subject, client.readContract(quoteSend)),
    askChain("the balance", client.readContract(balanceOf)),
    askChain("the native balance", client.getBalance({ address: owner })),
    planApprovals(client, { contract, token, owner, amount: amountSent }),
    readGasPrice(client, source.chainId),
  ]);
  const data = encodeSend({ param, nativeFee, refundTo: owner });
  const send = { to: contract, value: nativeFee, data };

  // Without the tokens, no node can try it; nor where LayerZero's fee would be paid with some of
  // them.
  const hasTokens = tokenBalance >= amountSent;
  const amountInNative = isNativeCoin(source, token) ? amountSent * nativeUnitsPerTokenUnit : 0n;
  const isPaidFor = nativeBalance > nativeFee + amountInNative;
  const isReady = hasTokens && approvals.length === 0 && isPaidFor;
  const sendGas = isReady ? await estimateGas(client, { owner, step: send, subject }) : undefined;
  const steps = [...approvals, send];
  const estimate =
    sendGas ?? (hasTokens ? await rehearseGas(client, { owner, steps, subject }) : undefined);
  const gas = estimate ?? (await boundGas(client, { approvals: approvals.length }));
  const { chainId } = source;
  const { gasPrice } = gasQuote;
  const dataFee = await readDataFee(client, { chainId, steps, gas, gasPrice });
  return {
    ...amounts,
    contract,
    kind: contractKinds.find((kind) => isContract(source, kind, contract)),
    approvals,
    send,
    sendGas,
    ...gasQuote,
    gas,
    dataFee,
    fee: gas * maxPerGas(gasPrice) + dataFee,
    feeBasis: estimate === undefined ? "bound" : "estimate",
    bridgeFee: nativeFee,
    tokenBalance,
    nativeBalance,
    amountInNative,
  };
}

function isContract({ contracts }: EvmBridgeChain, kind: ContractKind, contract: Address) {
  const ofTable = contracts[kind];
  return ofTable !== undefined && isAddressEqual(ofTable, contract);
}

function isNativeCoin({ nativeToken, token: usdt0 }: EvmBridgeChain, token: Address): boolean {
  return nativeToken === "USDT0" && usdt0 !== undefined && isAddressEqual(usdt0, token);
}
