import { checkPayment, type Payment, readPayment } from "@coinslot/protocol";
import { createDomainSeparatorCache } from "../../evm/domain-separator.ts";
import type { Scheme } from "../scheme.ts";
import { authorizationStateCall, isAuthorizationUsed } from "./authorization-state.ts";
import { diagnose } from "./diagnose.ts";
import { encodeTransfer, maxTransferBytes } from "./encode-transfer.ts";
import { encodeTrial, trialBytes } from "./encode-trial.ts";
import { findExecutions } from "./find-executions.ts";
import { hashTransfer } from "./hash-transfer.ts";
import { readOutcomes, readTransfer } from "./read-outcomes.ts";

const separatorOf = createDomainSeparatorCache();

function digestOf(payment: Payment): Uint8Array {
  return hashTransfer(separatorOf(payment), payment.authorization);
}

/**
 * `exact` by EIP-3009: the payer signs a `TransferWithAuthorization`, which anyone may send to the
 * token, and the token executes once.
 */
export const exactScheme: Scheme = {
  kind: "eip3009",
  read: readPayment,
  check: checkPayment,
  digestOf,
  diagnose: (payment, result, { rpc, readFacts }) =>
    diagnose(payment, result, { rpc, readFacts, digestOf }),
  admit: ({ kind, id, authorization, payTo }) => ({
    kind,
    id,
    value: authorization.value,
    validBefore: authorization.validBefore,
    payTo,
  }),
  commit: ({ payTo, authorization, signature }) => ({
    payTo,
    validAfter: authorization.validAfter,
    signature,
  }),
  encodeTrial,
  trialBytes,
  compose({ id, authorization, signature }, { payerHasCode }) {
    const callData = encodeTransfer({ authorization, signature, payerHasCode });
    return callData === undefined ? undefined : { target: id.asset, callData };
  },
  targetOf: ({ asset }) => asset,
  maxCallBytes: maxTransferBytes,
  nonceStateCall: authorizationStateCall,
  isUsed: isAuthorizationUsed,
  readOutcomes,
  readTransfer,
  findExecutions,
  reasons: {
    signature: "invalid_exact_evm_signature",
    recipientMismatch: "invalid_exact_evm_recipient_mismatch",
    alreadyUsed: "invalid_exact_evm_nonce_already_used",
    insufficientBalance: "invalid_exact_evm_insufficient_balance",
    expired: "invalid_exact_evm_payload_authorization_valid_before",
    trialFailed: "invalid_exact_evm_transaction_simulation_failed",
    executionFailed: "invalid_exact_evm_transaction_failed",
    transferMismatch: "invalid_exact_evm_transfer_event_mismatch",
  },
};
