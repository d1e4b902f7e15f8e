import {
  type EndpointFailureKind,
  RpcEndpointError,
  RpcResponseError,
  RpcUnavailableError,
} from "@coinslot/chain";

/** Reaction to a failed request for a range. */
export type Judgement =
  /** The range may have been too large: ask for less. */
  | { kind: "ask-less"; suggested: number | undefined }
  /** The range is not the cause: ask again later. */
  | { kind: "wait" }
  /** Not a failure of the chain. */
  | { kind: "give-up" };

/** Failures that do not depend on the range. Any other failure may, in any wording. */
const notTheRange: ReadonlySet<EndpointFailureKind> = new Set([
  "rate-limited",
  "unauthorized",
  "connection",
  "busy",
  "resting",
  "behind",
]);

/**
 * Decides by the kind of failure alone. Texts of providers are searched only for a hint at the
 * accepted size.
 */
export function judgeFailure(error: unknown): Judgement {
  if (error instanceof RpcResponseError)
    return { kind: "ask-less", suggested: suggestedSpan(error.details) };
  if (!(error instanceof RpcUnavailableError)) return { kind: "give-up" };
  const isTheRange = error.failures.some(
    (failure) => failure instanceof RpcEndpointError && !notTheRange.has(failure.kind),
  );
  return isTheRange ? { kind: "ask-less", suggested: undefined } : { kind: "wait" };
}

const blocksFromTo = /\[\s*(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)\s*\]/i;
const blockLimit =
  /(?:range|blocks?|distance|span)\D{0,40}?(\d[\d,_]*k?)\b|\b(\d[\d,_]*k?)[ -]?blocks?/i;

/**
 * Number of blocks that an endpoint says it accepts, in one of the common forms. Examples: "Try
 * with this block range [0x1, 0x2]", "block range is limited to 2,000", "up to a 500 block range".
 * It may be nonsense: the caller takes it only if it is less than the refused number.
 */
function suggestedSpan(text: string): number | undefined {
  const [, from, to] = blocksFromTo.exec(text) ?? [];
  if (from !== undefined && to !== undefined) return Number(to) - Number(from) + 1;
  const [, after, before] = blockLimit.exec(text) ?? [];
  const digits = (after ?? before)?.replace(/[,_]/g, "");
  if (digits === undefined) return undefined;
  return /k$/i.test(digits) ? Number(digits.slice(0, -1)) * 1_000 : Number(digits);
}
