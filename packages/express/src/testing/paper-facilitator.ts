import {
  authorizationKey,
  type Facilitator,
  plasma,
  readFacilitatorArguments,
  readPayment,
  recoverPayer,
  type SettleResponse,
  type VerifyResponse,
} from "@coinslot/protocol";

/** A facilitator whose chain is a set on paper, and whose answers a test may replace. */
export interface PaperFacilitator extends Facilitator {
  verifications: number;
  /** The identities of the authorizations that were settled, in their order. */
  settled: string[];
  /** Takes the place of a verification that would have been good. */
  onVerify: (() => VerifyResponse | Promise<VerifyResponse>) | undefined;
  /** Takes the place of a settlement; `settle` does what would have been done. */
  onSettle:
    | ((
        settle: () => SettleResponse,
        idempotencyKey: string | undefined,
      ) => Promise<SettleResponse>)
    | undefined;
}

/**
 * Verifies signatures for real, and settles each authorization once, without a chain: for tests of
 * HTTP behaviour.
 */
export function createPaperFacilitator(
  options: { versions?: readonly (1 | 2)[]; networks?: readonly string[] } = {},
): PaperFacilitator {
  const { versions = [1, 2], networks = [plasma] } = options;
  const facilitator: PaperFacilitator = {
    verifications: 0,
    settled: [],
    onVerify: undefined,
    onSettle: undefined,

    async verify(paymentPayload, paymentRequirements) {
      facilitator.verifications += 1;
      const payment = read(paymentPayload, paymentRequirements);
      const payer = payment.authorization.from;
      if ((await recoverPayer(payment)) !== payer) {
        return { isValid: false, invalidReason: "invalid_exact_evm_signature", payer };
      }
      if (facilitator.settled.includes(authorizationKey(payment.id))) {
        return { isValid: false, invalidReason: "invalid_exact_evm_nonce_already_used", payer };
      }
      return facilitator.onVerify ? facilitator.onVerify() : { isValid: true, payer };
    },

    async settle(paymentPayload, paymentRequirements, { idempotencyKey } = {}) {
      const { id, authorization } = read(paymentPayload, paymentRequirements);
      const key = authorizationKey(id);
      const settle = (): SettleResponse => {
        if (!facilitator.settled.includes(key)) facilitator.settled.push(key);
        return {
          success: true,
          transaction: `0x${authorization.nonce.slice(2)}`,
          network: id.network,
          payer: id.payer,
          amount: authorization.value.toString(),
        };
      };
      return facilitator.onSettle ? facilitator.onSettle(settle, idempotencyKey) : settle();
    },

    getSupported: () => ({
      kinds: versions.flatMap((x402Version) =>
        networks.map((network) => ({ x402Version, scheme: "exact", network })),
      ),
      extensions: [],
      signers: {},
    }),
  };
  return facilitator;
}

function read(paymentPayload: unknown, paymentRequirements: unknown) {
  const arguments_ = readFacilitatorArguments(paymentPayload, paymentRequirements);
  if (!arguments_.ok) throw new Error(arguments_.message);
  const { request } = arguments_;
  const found = readPayment(request.paymentPayload, request.paymentRequirements);
  if (!found.ok) throw new Error(found.reason);
  return found.payment;
}
