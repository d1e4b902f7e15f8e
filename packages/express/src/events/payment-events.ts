import {
  type AuthorizationId,
  authorizationKey,
  CallerGoneError,
  type FacilitatorRequest,
  readPayment,
  type SettleResponse,
  type VerifyResponse,
} from "@coinslot/protocol";
import type { EventSender, Tell } from "./event-sender.ts";
import type { EventSubject } from "./lifecycle-event.ts";

/** A facilitator's events of settlements, while it settles and after it has answered. */
export interface SettlementNews {
  /**
   * Subscribes the listener; returns the unsubscribe function. An event may come more than once.
   */
  onEvent(
    listener: (event: {
      /** `settle_started`, `settle_completed`, `settle_failed`; others are ignored. */
      type: string;
      authorization?: AuthorizationId | undefined;
      transactionHash?: string | undefined;
      reason?: string | undefined;
    }) => void,
  ): () => void;
}

/** One call of an endpoint: the receiver of its events, and their subject. */
interface Call {
  /** The `X-Event-Callback` of the request. */
  callback: string | undefined;
  /** Its client, for the limits of events. */
  limitKey: string;
  /** A payment; or a call about a channel, whose outcome is that of its answer alone. */
  request: FacilitatorRequest | EventSubject;
}

/** Runs verifications and settlements, and sends their events. Events never change an answer. */
export interface PaymentEvents {
  aroundVerify<Answer extends VerifyResponse>(
    call: Call,
    verify: () => Promise<Answer>,
  ): Promise<Answer>;
  aroundSettle<Answer extends SettleResponse>(
    call: Call,
    settle: () => Promise<Answer>,
  ): Promise<Answer>;
}

/** A subscriber to the outcome of one settlement. */
interface Follower {
  started(): void;
  completed(transactionHash: string): void;
  failed(error: string): void;
  isStarted(): boolean;
}

/** Checks of `/verify`, in the words of `verify_started`: of a payment, and of a channel. */
const checks = ["recipient", "amount", "validity", "signature", "nonce", "balance"] as const;
const channelChecks = ["recipient", "amount", "signature", "balance"] as const;
/** Settlements followed after their answer; beyond this bound the oldest are evicted. */
const maxFollowed = 10_000;

/**
 * Creates the events of a facilitator's work. Outcomes of settlements come from `news`; without it,
 * from the answer alone.
 */
export function createPaymentEvents(options: {
  sender: EventSender;
  news: Partial<SettlementNews>;
  signal?: AbortSignal | undefined;
}): PaymentEvents {
  const { sender, news, signal } = options;
  const followed = new Map<string, Set<Follower>>();
  const endNews = news.onEvent?.(({ type, authorization, transactionHash, reason }) => {
    const followers = authorization && followed.get(authorizationKey(authorization));
    for (const follower of [...(followers ?? [])]) {
      if (type === "settle_started") follower.started();
      if (type === "settle_completed" && transactionHash) follower.completed(transactionHash);
      if (type === "settle_failed") follower.failed(reason ?? "unexpected_settle_error");
    }
  });
  if (endNews) signal?.addEventListener("abort", endNews);

  function follow(key: string | undefined, { tell, about }: { tell: Tell; about: EventSubject }) {
    let isStarted = false;
    let isOver = false;
    const follower: Follower = {
      isStarted: () => isStarted,
      started() {
        if (!isStarted && !isOver) tell({ type: "settle_started", details: about });
        isStarted = true;
      },
      completed(transactionHash) {
        // A transaction in a block was broadcast, perhaps by another process, whose events do not
        // come here.
        if (transactionHash !== "") follower.started();
        const hash = transactionHash === "" ? {} : { transactionHash };
        if (!isOver) tell({ type: "settle_completed", details: { ...about, ...hash } });
        end();
      },
      failed(error) {
        if (!isOver) tell({ type: "settle_failed", details: { ...about, error } });
        end();
      },
    };
    function end(): void {
      isOver = true;
      const others = key === undefined ? undefined : followed.get(key);
      others?.delete(follower);
      if (key !== undefined && others?.size === 0) followed.delete(key);
    }
    if (key !== undefined && endNews) {
      const others = followed.get(key);
      if (others) others.add(follower);
      else followed.set(key, new Set([follower]));
      const [oldest] = followed.keys();
      if (followed.size > maxFollowed && oldest !== undefined) followed.delete(oldest);
    }
    return follower;
  }

  return {
    async aroundVerify({ callback, limitKey, request }, verify) {
      const tell = sender.open(callback, limitKey);
      if (tell === undefined) return verify();
      const { about, checks } = describe(request);
      tell({ type: "verify_started", details: { ...about, checks } });
      try {
        const result = await verify();
        const { isValid, invalidReason } = result;
        const verdict = invalidReason === undefined ? { isValid } : { isValid, invalidReason };
        tell({ type: "verify_completed", details: { ...about, ...verdict } });
        return result;
      } catch (error) {
        // No fault, and nothing is known of the payment.
        if (error instanceof CallerGoneError) throw error;
        tell({ type: "verify_failed", details: { ...about, error: "unexpected_verify_error" } });
        throw error;
      }
    },

    async aroundSettle({ callback, limitKey, request }, settle) {
      const tell = sender.open(callback, limitKey);
      if (tell === undefined) return settle();
      const { about, key } = describe(request);
      const follower = follow(key, { tell, about });
      try {
        const result = await settle();
        const { success, errorReason = "unexpected_settle_error", transaction } = result;
        if (success) follower.completed(transaction);
        else if (errorReason !== "settlement_pending") follower.failed(errorReason);
        else if (transaction !== "") follower.started();
        return result;
      } catch (error) {
        // Once broadcast, a settlement may still succeed: the event goes out when its outcome is
        // known.
        if (!follower.isStarted()) follower.failed("unexpected_settle_error");
        throw error;
      }
    },
  };
}

function describe(request: Call["request"]): {
  about: EventSubject;
  key: string | undefined;
  checks: readonly string[];
} {
  if (!("paymentPayload" in request)) {
    return { about: request, key: undefined, checks: channelChecks };
  }
  const { paymentPayload, paymentRequirements } = request;
  const read = readPayment(paymentPayload, paymentRequirements);
  if (!read.ok) {
    return { about: { network: paymentRequirements.network }, key: undefined, checks };
  }
  const { network, asset, payer, nonce } = read.payment.id;
  const key = authorizationKey(read.payment.id);
  return { about: { network, asset, payer, nonce }, key, checks };
}
