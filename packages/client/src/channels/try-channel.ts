import { checkResource } from "../offer/check-resource.ts";
import type { Candidate } from "../offer/choose-requirements.ts";
import type { Refusal } from "../offer/offer-refused-error.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { paymentOf } from "../send/payment-outcome.ts";
import type { RepeatableRequest } from "../send/repeatable-request.ts";
import type { OfferedWay } from "../wires/wire.ts";
import { buyByChannel } from "./buy-by-channel.ts";
import { findChannels, prefersChannel } from "./choose-channel.ts";

/**
 * Buys by a channel, if one is offered and preferred.
 *
 * @returns the answer, or the reasons why another way has to pay. Nothing is signed then
 */
export async function tryChannel(
  context: PayingFetchContext,
  wanted: {
    ways: readonly OfferedWay[];
    /** The best other way, if there is one. */
    other: Candidate | undefined;
    request: RepeatableRequest;
    url: URL;
    /** Resolves to whether there is more room than before. */
    freeRoom: () => Promise<boolean>;
  },
): Promise<Response | Refusal[]> {
  const { channels, protocols, assets } = context;
  const { ways, other, request, url, freeRoom } = wanted;
  if (channels === undefined) return [];
  const { networks } = context.chains;
  const found = findChannels({ ways, protocols, assets, networks, channels });
  const { refusals } = found;
  const [channel] = found.candidates;
  if (channel === undefined) return refusals;
  const { store } = await channels.open();
  const { exactFirst } = channels;
  if (!prefersChannel({ channel, other, origin: url.origin, exactFirst, store })) return refusals;
  checkResource(channel.way, url);
  const buy = () => buyByChannel(context, channels, { candidate: channel, request, url });
  let bought = await buy();
  const isOver = "code" in bought && bought.code === "over_budget";
  if (isOver && (await freeRoom())) bought = await buy();
  return "code" in bought ? [...refusals, bought] : bought;
}

/** Notes that a seller of channels was paid in another way: `exactFirst` is done with it. */
export async function noteOtherPurchase(
  { channels }: PayingFetchContext,
  { ways, response, url }: { ways: readonly OfferedWay[]; response: Response; url: URL },
): Promise<void> {
  const offersChannel = ways.some(({ channel }) => channel !== undefined);
  if (!channels || !offersChannel || paymentOf(response)?.state !== "settled") return;
  try {
    const { store } = await channels.open();
    store.notePurchase(url.origin);
  } catch {
    // The answer is paid for: the seller just stays unknown.
  }
}
