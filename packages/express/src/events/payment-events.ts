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
  request: FacilitatorRequest;
}

/** Runs verifications and settlements, and sends their events. Events never change an answer. */
export interface PaymentEvents {
  aroundVerify(call: Call, verify: () => Promise<VerifyResponse>): Promise<VerifyResponse>;
  aroundSettle(call: Call, settle: () => Promise<SettleResponse>): Promise<SettleResponse>;
}

/** A subscriber to the outcome of one settlement. */
interface Follower {
  started(): void;
  completed(transactionHash: string): void;
  failed(error: string): void;
  isStarted(): boolean;
}

/** Checks of `/verify`, in the words of `verify_started`. */
const checks = ["recipient", "amount", "validity", "signature", "nonce", "balance"] as const;
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
        follower.started();
        if (!isOver) tell({ type: "settle_completed", details: { ...about, transactionHash } });
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
    async aroundVerify({ callback, request }, verify) {
      const tell = sender.open(callback);
      if (tell === undefined) return verify();
      const { about } = describe(request);
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

    async aroundSettle({ callback, request }, settle) {
      const tell = sender.open(callback);
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

function describe({ paymentPayload, paymentRequirements }: FacilitatorRequest): {
  about: EventSubject;
  key: string | undefined;
} {
  const read = readPayment(paymentPayload, paymentRequirements);
  if (!read.ok) return { about: { network: paymentRequirements.network }, key: undefined };
  const { network, asset, payer, nonce } = read.payment.id;
  return { about: { network, asset, payer, nonce }, key: authorizationKey(read.payment.id) };
}
