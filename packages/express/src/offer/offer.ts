import {
  type ChannelSales,
  type ChannelTerms,
  ConfigurationError,
  freezeMessage,
  type PaymentRequirements,
} from "@coinslot/protocol";
import type { Request } from "express";
import type { MaybePromise } from "../maybe-promise.ts";
import type { MppMode } from "../mpp-options.ts";
import { readPayTo } from "../routes/read-pay-to.ts";
import type { AskSeller, PaymentTerms } from "../routes/read-payment-option.ts";
import { readPrice } from "../routes/read-price.ts";
import type { Route } from "../routes/read-routes.ts";
import { channelWay } from "./channel-way.ts";
import { askSeller } from "./seller-function-error.ts";
import type { ServedVersion, ServedVersions } from "./served-versions.ts";

/** One way to pay for one request. */
export interface OfferedWay {
  requirements: PaymentRequirements;
  /** Versions of x402 in which the facilitator takes payments on its network. */
  versions: ReadonlySet<ServedVersion>;
  /** Whether it is offered by MPP, too. */
  mpp: MppMode;
  /** Terms of its channels, today's first; `undefined`: by the scheme `exact`. */
  channelTerms?: readonly [ChannelTerms, ...ChannelTerms[]] | undefined;
}

/** All ways to pay for one request. */
export type Offer = readonly OfferedWay[];

/**
 * Makes a route's offer for a request. Without functions of the seller's, it is always the same
 * object.
 */
export type MakeOffer = (request: Request) => MaybePromise<Offer>;

/** Returns whether no function of the seller's decides a price or a recipient. */
export function hasFixedTerms(accepts: readonly PaymentTerms[]): boolean {
  return accepts.every(
    ({ price, payTo }) => typeof price !== "function" && typeof payTo !== "function",
  );
}

/**
 * Prepares the offer of a route. The seller's functions for prices and recipients are called once
 * for each request.
 *
 * The function throws a `SellerFunctionError` when the seller's threw, or a `ConfigurationError`
 * when that returned no price or no recipient.
 */
export function prepareOffer(options: {
  route: Route;
  versionsOf: ServedVersions;
  /** Of the middleware, for routes that have no setting of their own. */
  mpp: MppMode;
  /** Of the facilitator; `undefined`: it serves none. */
  channels: Pick<ChannelSales, "authorizerOf" | "minDepositOf"> | undefined;
}): MakeOffer {
  const { route, versionsOf, channels } = options;
  const { mpp = options.mpp } = route;
  if (hasFixedTerms(route.accepts)) {
    const offer = route.accepts.map((terms) => toWay(terms, terms.price, terms.payTo));
    return () => offer;
  }
  return (request) => Promise.all(route.accepts.map((terms) => resolve(terms, request)));

  async function resolve(terms: PaymentTerms, request: Request): Promise<OfferedWay> {
    const { price, payTo } = terms;
    return toWay(
      terms,
      typeof price === "function" ? await ask("The price", price, request) : price,
      typeof payTo === "function" ? await ask("The recipient", payTo, request) : payTo,
    );
  }

  function ask(hook: string, asked: AskSeller, request: Request): Promise<unknown> {
    return askSeller(hook, route.key, () => asked(request));
  }

  function toWay(terms: PaymentTerms, price: unknown, payTo: unknown): OfferedWay {
    const { network, maxTimeoutSeconds = route.maxTimeoutSeconds } = terms;
    const { paymentFlow } = route;
    const readingOfPrice = readPrice(price, { network, paymentFlow, extra: terms.extra });
    const readingOfPayTo = readPayTo(payTo);
    if (!readingOfPrice.ok) {
      throw unusable(readingOfPrice.problems.map((problem) => `price ${problem}`));
    }
    if (!readingOfPayTo.ok) throw unusable([`payTo ${readingOfPayTo.problem}`]);
    const { amount, asset, extra } = readingOfPrice.price;
    const flow = paymentFlow === "upfront" ? { paymentFlow } : {};
    if (terms.channel !== undefined) {
      const { payTo } = readingOfPayTo;
      const offered = { network, amount, asset, payTo, maxTimeoutSeconds };
      return channelWay(terms.channel, {
        ...offered,
        extra: { ...extra, ...flow },
        receiverAuthorizer: channels?.authorizerOf(network),
        facilitatorMinDeposit: channels?.minDepositOf?.(network),
      });
    }
    return {
      requirements: freezeMessage({
        scheme: "exact" as const,
        network,
        amount,
        asset,
        payTo: readingOfPayTo.payTo,
        maxTimeoutSeconds,
        extra: { ...extra, ...flow },
      }),
      versions: versionsOf(network),
      mpp,
    };
  }

  function unusable(problems: readonly string[]): ConfigurationError {
    return new ConfigurationError(`The offer of "${route.key}"`, problems);
  }
}
