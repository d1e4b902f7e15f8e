import { isRevert, RpcError } from "@coinslot/chain";
import { FacilitatorError, type InvalidReason, type Payment } from "@coinslot/protocol";
import { bytesWords, uintWord } from "../../evm/word.ts";
import { compareDomain } from "../../token/compare-domain.ts";
import type { DiagnosisTools } from "../scheme.ts";
import type { SimulationResult } from "../simulation-result.ts";

/** Services for a diagnosis. */
interface ExactDiagnosisTools extends DiagnosisTools {
  /** The EIP-712 digest that the payer is to have signed. */
  digestOf: (payment: Payment) => Uint8Array;
}

/**
 * Finds the reason why a transfer that was tried failed. The order of the checks is that of
 * usefulness: the token, the payment, and only then the payer's holdings.
 *
 * @throws FacilitatorError when the chain is unreachable.
 */
export async function diagnose(
  payment: Payment,
  result: SimulationResult,
  tools: ExactDiagnosisTools,
): Promise<InvalidReason> {
  const { authorization, asset } = payment;
  if (!result.assetHasCode) return "asset_not_deployed_contract";
  if (result.isUsed) return "invalid_exact_evm_nonce_already_used";
  // The chain's clock is that of its latest block, and may be behind ours.
  if (authorization.validAfter >= result.blockTimestamp) {
    return "invalid_exact_evm_payload_authorization_valid_after";
  }
  if (authorization.validBefore <= result.blockTimestamp) {
    return "invalid_exact_evm_payload_authorization_valid_before";
  }
  const facts = await tools.readFacts(asset);
  const comparison = compareDomain(payment, facts);
  if (comparison.result === "differs") {
    return comparison.name === undefined
      ? "invalid_exact_evm_token_version_mismatch"
      : "invalid_exact_evm_token_name_mismatch";
  }
  if (!facts.hasAuthorizations) return "invalid_exact_evm_eip3009_not_supported";
  if (result.payerHasCode && !(await acceptsSignature(payment, tools))) {
    return "invalid_exact_evm_signature";
  }
  if (result.balance < authorization.value) return "invalid_exact_evm_insufficient_balance";
  return "invalid_exact_evm_transaction_simulation_failed";
}

const isValidSignatureSelector = "0x1626ba7e";
const signatureCheckGas = 300_000n;

/** Asks a payer with code whether a signature is its own (EIP-1271). */
async function acceptsSignature(
  payment: Payment,
  { rpc, digestOf }: ExactDiagnosisTools,
): Promise<boolean> {
  const { authorization, signature } = payment;
  const digest = Buffer.from(digestOf(payment)).toString("hex");
  const data = `${isValidSignatureSelector}${digest}${uintWord(64)}${bytesWords(signature)}`;
  const gas = signatureCheckGas + BigInt(data.length / 2) * 40n;
  const call = { to: authorization.from, data, gas: `0x${gas.toString(16)}` };
  try {
    const answer = await rpc.request({ method: "eth_call", params: [call, "latest"] });
    return typeof answer === "string" && answer.startsWith(isValidSignatureSelector);
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    if (isRevert(cause)) return false;
    throw new FacilitatorError("The chain cannot be read at the moment", {
      kind: "unavailable",
      cause,
    });
  }
}
