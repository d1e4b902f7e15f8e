import type { Address } from "viem";
import type { BridgeContext } from "../bridge-options.ts";
import { type BridgeRequest, checkRequest } from "../bridge-request.ts";
import type { ContractKind } from "../chains/bridge-chain.ts";
import { findSourceChain } from "../chains/source-chain.ts";
import { planTransfer } from "./plan-transfer.ts";
import type { AmountQuote } from "./quote-amounts.ts";

/** Cost and result of a transfer. Fees are in the native coin of the source chain (18 decimals). */
export interface BridgeQuote extends AmountQuote {
  /** Key of the chain that is behind the RPC endpoint. */
  sourceChain: string;
  /** As in the request. */
  targetChain: string;
  recipient: string;
  token: Address;
  /**
   * Maximum cost of gas, and on a rollup of data: of the send, and of approvals where they are
   * missing.
   */
  fee: bigint;
  /** LayerZero's fee. */
  bridgeFee: bigint;
  /**
   * `bound`: the node could not try the transfer, so the gas is the upper bound of any transfer.
   */
  feeBasis: "estimate" | "bound";
  /** The contract it would be sent through. */
  contract: Address;
  /** The contract's network; `undefined`: it was given, and is not in the table. */
  kind: ContractKind | undefined;
}

/** Quotes a transfer. Signs nothing, and needs neither an allowance nor the tokens. */
export async function quoteTransfer(
  context: BridgeContext,
  request: BridgeRequest,
): Promise<BridgeQuote> {
  const checked = checkRequest(request, context.chains);
  const { client, chain } = await findSourceChain(context, checked.target);
  const plan = await planTransfer({
    client,
    source: chain,
    owner: context.owner,
    request: checked,
  });
  const { fee, bridgeFee, feeBasis, amountSent, amountReceived, limits, contract, kind } = plan;
  const sourceChain = chain.key;
  return {
    sourceChain,
    targetChain: request.targetChain,
    recipient: request.recipient,
    token: checked.token,
    fee,
    bridgeFee,
    feeBasis,
    amountSent,
    amountReceived,
    limits,
    contract,
    kind,
  };
}
