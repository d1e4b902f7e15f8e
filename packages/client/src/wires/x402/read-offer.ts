import {
  DecodeError,
  decodePaymentRequired,
  headerName,
  type Offer,
  parsePaymentRequiredV1,
} from "@coinslot/protocol";
import { readText } from "../read-text.ts";

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
