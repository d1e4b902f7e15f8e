import type { RpcRequester } from "@coinslot/chain";
import {
  type Address,
  FacilitatorError,
  type Network,
  type Payment,
  toLowerHex,
  type VerifyOptions,
} from "@coinslot/protocol";
import { createSignerRecovery } from "../evm/recover-signer.ts";
import type { Logger } from "../logger.ts";
import { schemeOf } from "../schemes/registry.ts";
import { goesThrough } from "../schemes/simulation-result.ts";
import type { Simulator } from "../simulation/simulator.ts";
import { createTokenFactsCache } from "../token/token-facts-cache.ts";
import { checkLocally, type ServedNetwork } from "./check-locally.ts";
import { createDeployedAssets } from "./deployed-assets.ts";
import { judge } from "./judge.ts";
import { refuse } from "./refuse.ts";
import { createSenderCodes } from "./sender-codes.ts";
import { createSignatureBudget, type SignatureLimits } from "./signature-budget.ts";
import { createSignatureCheck } from "./signature-check.ts";
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
  /** True if payers may have code. Default `true`. */
  acceptsPayersWithCode?: boolean | undefined;
  networks: ReadonlyMap<Network, VerifierNetwork>;
  /** Unix milliseconds. */
  now: () => number;
  logger: Logger;
  /** Limit of signatures that cost chain calls and prove not to be the payer's. */
  limits?: SignatureLimits | undefined;
}

/** Decides whether a payment is good. Changes nothing. */
export interface Verifier {
  /**
   * The checks without an RPC call. Takes the messages of either version as they came, and never
   * throws.
   */
  verifyLocally(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): LocalVerdict;
  /**
   * The same, and the signature. One that is not of the payer's key is refused, unless the payer
   * has code. Only the chain can judge that. No call to a node where that is known, or does not
   * matter.
   *
   * @throws FacilitatorError when the chain is unreachable, or `limitKey` has asked too often.
   */
  screen(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): LocalVerdict | Promise<LocalVerdict>;
  /**
   * All checks. Concurrent callers share one RPC request for each network.
   *
   * @throws CallerGoneError when `options.wait` says so before a node is asked.
   * @throws FacilitatorError when the chain is unreachable, or too many of the payer's payments
   * wait for it. That proves nothing about the payment.
   */
  verify(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): Promise<Verdict>;
  /** Remembers the payer of a payment that was verified here, and settled. */
  prove(payment: Payment): void;
}

/** Verifications of one payer through one caller that wait for a node, at most. */
const maxWaitingTrials = 1_000;

/** Creates a verifier for some networks. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { networks, acceptsPayersWithCode = true, now, logger, limits } = options;
  const recovery = createSignerRecovery();
  if (recovery.implementation === "noble") {
    logger.warn(
      { err: recovery.cause },
      "native secp256k1 is not usable here: signatures are checked in JavaScript, 20 times slower",
    );
  }
  const served = servedNetworks(networks);
  const chains = createChainCaches(networks, now);
  const budget = createSignatureBudget({ limits, now });
  const isSignedByPayer = createSignatureCheck({
    digestOf: (payment) => schemeOf(payment).digestOf(payment),
    recoverSigner: recovery.recoverSigner,
  });

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

  function screen(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): LocalVerdict | Promise<LocalVerdict> {
    const local = verifyLocally(paymentPayload, paymentRequirements, options);
    if (!local.isValid || local.isSignedByPayer()) return local;
    return screenCode(local, options?.limitKey);
  }

  /** For a signature that only code can accept, or that is forged. */
  async function screenCode(
    local: LocalVerdict & { isValid: true },
    limitKey: string | undefined,
  ): Promise<LocalVerdict> {
    const { payer, payment } = local;
    const codes = chains.get(payment.network)?.codes;
    if (codes?.recall(payer) !== false) {
      // Only a node knows if there is code, and if it accepts.
      budget.charge(payment, limitKey);
      if (codes?.recall(payer) || (await codes?.read(payer))) return local;
    }
    return refuse(schemeOf(payment).reasons.signature, { payer });
  }

  async function verify(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    options?: VerifyOptions,
  ): Promise<Verdict> {
    const screening = screen(paymentPayload, paymentRequirements, options);
    // Not always awaited: payments that are checked in one turn share one request.
    const local = screening instanceof Promise ? await screening : screening;
    if (!local.isValid) return local;
    const { payment, payer } = local;
    const chain = chains.get(payment.network);
    if (chain === undefined) return refuse("invalid_network", { payer });
    const { simulator } = chain;
    if (simulator.countWaiting(payment.id.payer, options?.limitKey) >= maxWaitingTrials) {
      throw tooManyWaiting();
    }
    const result = await simulator.simulate(payment, options);
    const isSigned = local.isSignedByPayer();
    if (!chain.deployed.note(payment.asset, result.assetHasCode)) throw nodeLacksToken();
    const { payerHasCode } = result;
    if (payerHasCode || !isSigned) chain.codes.remember(payer, payerHasCode);
    if (payerHasCode && !acceptsPayersWithCode) {
      const message = "Payers with code (contracts, EIP-7702 accounts) are not accepted here.";
      return refuse("payer_not_accepted", { payer, message });
    }
    // Code may refuse what its key has signed: finding that out is one more call.
    if (payerHasCode && !goesThrough(result)) budget.charge(payment, options?.limitKey);
    const verdict = await judge(payment, {
      result,
      isSignedByPayer: isSigned,
      tools: chain.tools,
    });
    if (verdict.isValid) budget.refund(payment);
    return verdict;
  }

  return { verifyLocally, screen, verify, prove: budget.prove };
}

function tooManyWaiting(): FacilitatorError {
  return new FacilitatorError("Too many payments of this payer are being verified", {
    kind: "unavailable",
    retryAfterSeconds: 1,
  });
}

function nodeLacksToken(): FacilitatorError {
  return new FacilitatorError("The node does not have the token, which it had before; try again", {
    kind: "unavailable",
    retryAfterSeconds: 1,
  });
}

/** The networks, as the checks without a node use them. */
function servedNetworks(
  networks: VerifierOptions["networks"],
): ReadonlyMap<Network, ServedNetwork> {
  return new Map(
    [...networks].map(([network, { assets, blockTimeSeconds }]) => [
      network,
      { assets: assets && new Set(assets.map(toLowerHex)), blockTimeSeconds },
    ]),
  );
}

/** The simulator of each network, and caches of its nodes' answers. */
function createChainCaches(networks: VerifierOptions["networks"], now: () => number) {
  return new Map(
    [...networks].map(([network, { rpc, simulator }]) => [
      network,
      {
        simulator,
        codes: createSenderCodes({ rpc, now }),
        deployed: createDeployedAssets(),
        tools: { rpc, readFacts: createTokenFactsCache({ rpc, now }) },
      },
    ]),
  );
}
