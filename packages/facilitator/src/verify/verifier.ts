import { setImmediate as nextTurn } from "node:timers/promises";
import type { RpcRequester } from "@coinslot/chain";
import {
  type Address,
  type Network,
  type Payment,
  toLowerHex,
  type VerifyOptions,
} from "@coinslot/protocol";
import type { Logger } from "../logger.ts";
import type { Simulator } from "../simulation/simulator.ts";
import { createDomainSeparatorCache } from "../token/domain-separator.ts";
import { hashTransfer } from "../token/hash-transfer.ts";
import { createSignerRecovery } from "../token/recover-signer.ts";
import { createSignatureCheck } from "../token/signature-check.ts";
import { createTokenFactsCache } from "../token/token-facts-cache.ts";
import { checkLocally, type ServedNetwork } from "./check-locally.ts";
import { judge } from "./judge.ts";
import { refuse } from "./refuse.ts";
import type { LocalVerdict, Verdict } from "./verdict.ts";

/** One network as a verifier sees it. */
export interface VerifierNetwork {
  rpc: RpcRequester;
  simulator: Simulator;
  /** The tokens that are served; every token when absent. */
  assets?: readonly Address[] | undefined;
  /** Longest usual time between two blocks. */
  blockTimeSeconds?: number | undefined;
}

export interface VerifierOptions {
  /** Whether payers may have code. Default `true`. */
  acceptsPayersWithCode?: boolean | undefined;
  networks: ReadonlyMap<Network, VerifierNetwork>;
  /** Unix milliseconds. */
  now: () => number;
  logger: Logger;
}

/** Says of a payment whether it is good. Changes nothing. */
export interface Verifier {
  /** The checks that ask nobody. Takes the messages of either version as they came, and never throws. */
  verifyLocally(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): LocalVerdict;
  /**
   * All checks. Whoever asks at the same time shares one RPC request for each network.
   *
   * @throws FacilitatorError when the chain cannot be asked: that says nothing of the payment.
   */
  verify(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): Promise<Verdict>;
}

/** Creates a verifier for some networks. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { networks, acceptsPayersWithCode = true, now, logger } = options;
  const separatorOf = createDomainSeparatorCache();
  const recovery = createSignerRecovery();
  if (recovery.implementation === "noble") {
    logger.warn(
      { err: recovery.cause },
      "native secp256k1 is not usable here: signatures are checked in JavaScript, 20 times slower",
    );
  }
  const served = new Map<Network, ServedNetwork>(
    [...networks].map(([network, { assets, blockTimeSeconds }]) => [
      network,
      { assets: assets && new Set(assets.map(toLowerHex)), blockTimeSeconds },
    ]),
  );
  const chains = new Map(
    [...networks].map(([network, { rpc, simulator }]) => [
      network,
      { simulator, tools: { rpc, digestOf, readFacts: createTokenFactsCache({ rpc, now }) } },
    ]),
  );

  const isSignedByPayer = createSignatureCheck({
    separatorOf,
    recoverSigner: recovery.recoverSigner,
  });

  function digestOf(payment: Payment): Uint8Array {
    return hashTransfer(separatorOf(payment), payment.authorization);
  }

  function verifyLocally(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): LocalVerdict {
    return checkLocally({
      paymentPayload,
      paymentRequirements,
      served,
      isSignedByPayer,
      now: now(),
      options,
    });
  }

  async function verify(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): Promise<Verdict> {
    const local = verifyLocally(paymentPayload, paymentRequirements, options);
    if (!local.isValid) return local;
    const { payment } = local;
    const chain = chains.get(payment.network);
    if (chain === undefined) return refuse("invalid_network", { payer: local.payer });
    const [reading, isSignedByPayer] = await Promise.all([
      chain.simulator.simulate(payment),
      // Finding the key takes longer than all other checks: it is found while the chain is asked.
      nextTurn().then(local.isSignedByPayer),
    ]);
    if (reading.payerHasCode && !acceptsPayersWithCode) {
      const message = "Payers with code (contracts, EIP-7702 accounts) are not accepted here.";
      return refuse("payer_not_accepted", { payer: local.payer, message });
    }
    return judge(payment, { reading, isSignedByPayer, tools: chain.tools });
  }

  return { verifyLocally, verify };
}
