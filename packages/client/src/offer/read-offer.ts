import {
  DecodeError,
  decodePaymentRequired,
  headerName,
  type Offer,
  parsePaymentRequiredV1,
} from "@coinslot/protocol";

/** Largest body that is searched for an offer of version 1. */
const maxBodyBytes = 262_144;

/**
 * The offer of a 402 answer: version 2 from its header, else version 1 from its body. The response
 * can still be read afterwards.
 *
 * @param timeoutMs only the part of the body that has arrived by then is read
 * @returns `undefined` when the answer is no x402 offer.
 */
export async function readOffer(
  response: Response,
  timeoutMs?: number,
): Promise<Offer | undefined> {
  const header = response.headers.get(headerName.paymentRequired);
  const fromHeader =
    header === null ? undefined : unlessUnreadable(() => decodePaymentRequired(header));
  if (fromHeader) return fromHeader;
  const text = await readText(response.clone(), timeoutMs);
  return text === undefined
    ? undefined
    : unlessUnreadable(() => parsePaymentRequiredV1(JSON.parse(text)));
}

function unlessUnreadable(read: () => Offer): Offer | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof DecodeError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The text of a body that is not too large, or the part that has arrived in time. */
export async function readText(
  response: Response,
  timeoutMs?: number,
): Promise<string | undefined> {
  if (response.body === null) return undefined;
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  // Not awaited: a copy is only cancelled when the response itself has come to its end, too.
  const stop = () => void reader.cancel().catch(() => undefined);
  const timer = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs);
  let text = "";
  try {
    for (let length = 0; length <= maxBodyBytes; ) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      length += value.byteLength;
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    clearTimeout(timer);
  }
  stop();
  return undefined;
}
