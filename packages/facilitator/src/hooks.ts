import type {
  AnyPaymentPayload,
  AnyPaymentRequirements,
  SettleResponse,
  VerifyResponse,
} from "@coinslot/protocol";
import type { Logger } from "./logger.ts";

/** Arguments of every hook: the two messages, as the caller passed them. */
export interface HookContext {
  paymentPayload: AnyPaymentPayload;
  requirements: AnyPaymentRequirements;
}

/** With the result. */
export interface ResultContext<Result> extends HookContext {
  result: Result;
}

/** With the reason of the failure. */
export interface FailureContext extends HookContext {
  error: Error;
}

/** Refuses a payment: `reason` becomes the `invalidReason` or `errorReason` of the answer. */
export interface Abort {
  abort: true;
  reason: string;
  message?: string | undefined;
}

type Awaitable<T> = T | Promise<T>;

/** Runs before; refuses the payment by returning an `Abort`, or by throwing. */
// biome-ignore lint/suspicious/noConfusingVoidType: most hooks are async functions that return nothing.
export type BeforeHook = (context: HookContext) => Awaitable<Abort | void>;
/** An observer. Its result and its exceptions change nothing. An exception is logged. */
export type ObservingHook<Context> = (context: Context) => Awaitable<unknown>;

/** All hooks. */
export interface HookSet {
  onBeforeVerify: BeforeHook;
  /** Sees valid and invalid payments. */
  onAfterVerify: ObservingHook<ResultContext<VerifyResponse>>;
  /** Sees invalid payments, and faults of ours. */
  onVerifyFailure: ObservingHook<FailureContext>;
  onBeforeSettle: BeforeHook;
  /** Sees settled and failed payments, and those whose outcome is not known yet. */
  onAfterSettle: ObservingHook<ResultContext<SettleResponse>>;
  /** Sees payments that were not settled, and faults of ours. */
  onSettleFailure: ObservingHook<FailureContext>;
}

/**
 * The methods that add a hook. They return the object they were called on, so that they can be
 * chained.
 */
export type HookMethods<Self> = {
  [Name in keyof HookSet]: (hook: HookSet[Name]) => Self;
};

export interface Hooks {
  /** Methods for an object that wants to be chainable: `{ ...hooks.methods(() => self), … }`. */
  methods<Self>(self: () => Self): HookMethods<Self>;
  /** Runs `verify` among its hooks. Throws only what `verify` throws. */
  aroundVerify<Result extends VerifyResponse>(
    context: HookContext,
    verify: () => Promise<Result>,
  ): Promise<Result | VerifyResponse>;
  /**
   * Runs `settle` among its hooks. Throws only exceptions of `settle` and `isBegun`. The hooks
   * before it decide on a payment once. One that `isBegun` reports may be on the chain, and is
   * settled without them.
   */
  aroundSettle(
    context: HookContext,
    settle: () => Promise<SettleResponse>,
    isBegun?: () => Promise<boolean>,
  ): Promise<SettleResponse>;
}

/**
 * The hooks of a facilitator. They run in the calling process, in the order in which they were
 * added, and are awaited. They do not see events after a crash: the ledger is the record.
 *
 * The rule: before-hooks decide, and fail closed. All others observe, and cannot change a result.
 * They see a refusal by a before-hook as a result like any other.
 */
export function createHooks(options: {
  logger: Logger;
  /** Hooks to begin with. */
  hooks?: Partial<HookSet> | undefined;
}): Hooks {
  const { logger, hooks = {} } = options;
  const added: AddedHooks = {
    onBeforeVerify: listOf(hooks.onBeforeVerify),
    onAfterVerify: listOf(hooks.onAfterVerify),
    onVerifyFailure: listOf(hooks.onVerifyFailure),
    onBeforeSettle: listOf(hooks.onBeforeSettle),
    onAfterSettle: listOf(hooks.onAfterSettle),
    onSettleFailure: listOf(hooks.onSettleFailure),
  };

  const hooking: Hooking = { logger, added };
  return {
    methods: (self) => ({
      onBeforeVerify: adder(added.onBeforeVerify, self),
      onAfterVerify: adder(added.onAfterVerify, self),
      onVerifyFailure: adder(added.onVerifyFailure, self),
      onBeforeSettle: adder(added.onBeforeSettle, self),
      onAfterSettle: adder(added.onAfterSettle, self),
      onSettleFailure: adder(added.onSettleFailure, self),
    }),

    async aroundVerify(context, verify) {
      const refusal = await decide(hooking, "onBeforeVerify", context);
      const result = refusal
        ? { isValid: false, invalidReason: refusal.reason, invalidMessage: refusal.message }
        : await orObserve(verify, (error) => observeVerifyFailure(hooking, context, error));
      await runObservers(hooking, "onAfterVerify", added.onAfterVerify, { result, ...context });
      if (!result.isValid) {
        const { invalidReason, invalidMessage } = result;
        await observeVerifyFailure(hooking, context, describe(invalidReason, invalidMessage));
      }
      return result;
    },

    async aroundSettle(context, settle, isBegun = async () => false) {
      const decideAndSettle = async (): Promise<SettleResponse> => {
        const isDecided = added.onBeforeSettle.length === 0 || (await isBegun());
        const refusal = isDecided ? undefined : await decide(hooking, "onBeforeSettle", context);
        if (refusal === undefined) return settle();
        return {
          success: false,
          errorReason: refusal.reason,
          errorMessage: refusal.message,
          transaction: "",
          network: context.requirements.network,
        };
      };
      const result = await orObserve(decideAndSettle, (error) =>
        observeSettleFailure(hooking, context, error),
      );
      await runObservers(hooking, "onAfterSettle", added.onAfterSettle, { result, ...context });
      if (!result.success) {
        await observeSettleFailure(
          hooking,
          context,
          describe(result.errorReason, result.errorMessage),
        );
      }
      return result;
    },
  };
}

type AddedHooks = { [Name in keyof HookSet]: HookSet[Name][] };

interface Hooking {
  logger: Logger;
  added: AddedHooks;
}

/** The first refusal. No later hook runs. */
async function decide(
  { logger, added }: Hooking,
  name: "onBeforeVerify" | "onBeforeSettle",
  context: HookContext,
): Promise<{ reason: string; message: string } | undefined> {
  for (const hook of added[name]) {
    try {
      const decision = await hook(context);
      if (decision?.abort === true) {
        const { reason, message = "The payment was refused by the seller's own rule." } = decision;
        return { reason, message };
      }
    } catch (err) {
      logger.error({ err, hook: name }, "a hook threw: the payment is refused");
      return {
        reason: "payment_refused",
        message: "The seller's own rule could not be applied.",
      };
    }
  }
  return undefined;
}

async function runObservers<Context>(
  { logger }: Hooking,
  name: keyof HookSet,
  observers: readonly ObservingHook<Context>[],
  context: Context,
): Promise<void> {
  for (const observe of observers) {
    try {
      await observe(context);
    } catch (err) {
      logger.error({ err, hook: name }, "a hook threw; its error has no effect");
    }
  }
}

function observeVerifyFailure(hooking: Hooking, context: HookContext, error: Error): Promise<void> {
  return runObservers(hooking, "onVerifyFailure", hooking.added.onVerifyFailure, {
    error,
    ...context,
  });
}

function observeSettleFailure(hooking: Hooking, context: HookContext, error: Error): Promise<void> {
  return runObservers(hooking, "onSettleFailure", hooking.added.onSettleFailure, {
    error,
    ...context,
  });
}

function listOf<T>(hook: T | undefined): T[] {
  return hook === undefined ? [] : [hook];
}

function adder<Hook, Self>(hooks: Hook[], self: () => Self): (hook: Hook) => Self {
  return (hook) => {
    hooks.push(hook);
    return self();
  };
}

async function orObserve<T>(
  run: () => Promise<T>,
  observe: (error: Error) => Promise<void>,
): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    await observe(thrown instanceof Error ? thrown : new Error(String(thrown)));
    throw thrown;
  }
}

function describe(reason = "unknown", message?: string): Error {
  return new Error(message === undefined ? reason : `${reason}: ${message}`);
}
