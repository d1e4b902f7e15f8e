import { parseShape } from "../x402/base64-json.ts";
import { DecodeError } from "../x402/decode-error.ts";
import { type Challenge, challengeMembers, challengeSchema } from "./challenge.ts";

/** The authentication scheme's name. Scheme names have no case. */
export const paymentScheme = "Payment";

/** Largest `WWW-Authenticate` value that is read, in characters. */
const maxChallengesLength = 65_536;

/** A challenge of a header, or the fault for which it cannot be read. */
export type ReadChallenge = { ok: true; challenge: Challenge } | { ok: false; error: DecodeError };

/**
 * Writes a challenge as one value of `WWW-Authenticate`.
 *
 * @throws RangeError for a character that a header cannot carry: printable ASCII alone passes.
 */
export function formatChallenge(challenge: Challenge): string {
  return `${paymentScheme} ${formatParameters(challenge)}`;
}

/** The members that a seller makes anew for each challenge. */
type FreshMembers = Record<"id" | "expires" | "opaque", string>;

/** Characters of ids, instants and base64url: none ends a quoted string, or needs an escape. */
const plain = /^[\w:.+-]*$/;

/**
 * Prepares challenges that differ in their fresh members alone: the rest is written once. The
 * result writes a challenge as `formatChallenge` does, in a fraction of its time.
 *
 * @throws RangeError for a character that a header cannot carry. The result throws it for a fresh
 * member that is no id in base64url, no instant, and no base64url.
 */
export function prepareChallenge(
  same: Omit<Challenge, keyof FreshMembers>,
): (fresh: FreshMembers) => string {
  const { header, ...early } = same;
  const start = `${paymentScheme} id="`;
  const beforeExpires = `", ${formatParameters(early)}, expires="`;
  const beforeOpaque = `", ${header === undefined ? "" : `${formatParameters({ header })}, `}opaque="`;
  return ({ id, expires, opaque }) => {
    if (!plain.test(id) || !plain.test(expires) || !plain.test(opaque))
      throw new RangeError("A fresh member of the challenge needs quotation");
    return `${start}${id}${beforeExpires}${expires}${beforeOpaque}${opaque}"`;
  };
}

function formatParameters(members: Partial<Challenge>): string {
  return challengeMembers
    .flatMap((name) => {
      const value = members[name];
      return value === undefined ? [] : [`${name}=${quote(name, value)}`];
    })
    .join(", ");
}

function quote(name: string, value: string): string {
  if (!/^[\x20-\x7e]*$/.test(value))
    throw new RangeError(`The challenge's ${name} holds a character that no header carries`);
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/**
 * Reads the `Payment` challenges of a `WWW-Authenticate` header, whose lines may be joined with
 * commas. Other schemes are skipped. Each challenge is read apart: a bad one spoils no other.
 */
export function parseChallenges(header: string): ReadChallenge[] {
  const noun = "The WWW-Authenticate header";
  if (header.length > maxChallengesLength)
    return [{ ok: false, error: new DecodeError(noun, "too_large") }];
  return splitSchemes(header)
    .filter(({ scheme }) => scheme.toLowerCase() === paymentScheme.toLowerCase())
    .map((read) => readChallenge(read));
}

function readChallenge({ parameters, isBroken }: ReadScheme): ReadChallenge {
  const noun = "A Payment challenge";
  const names = parameters.map(([name]) => name);
  if (isBroken || new Set(names).size < names.length)
    return { ok: false, error: new DecodeError(noun, "wrong_shape") };
  const known = parameters.filter(([name]) => isMember(name));
  try {
    const value = Object.fromEntries(known);
    return { ok: true, challenge: parseShape({ noun, value, schema: challengeSchema }) };
  } catch (error) {
    if (error instanceof DecodeError) return { ok: false, error };
    throw error;
  }
}

function isMember(name: string): boolean {
  return challengeMembers.some((member) => member === name);
}

interface ReadScheme {
  scheme: string;
  /** Names in lower case, values unescaped. */
  parameters: [name: string, value: string][];
  /** It holds text that is no parameter, such as an open quotation. */
  isBroken: boolean;
}

const separators = /[\s,]*/y;
const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const equals = /[ \t]*=[ \t]*/y;
const quoted = /"((?:[^"\\]|\\.)*)"/sy;
/** Credentials without parameters, as in `Bearer abc==`. */
const token68 = /[ \t]+[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;
/** A parameter's end: without it, the rest up to the next comma is no parameter. */
const end = /[ \t]*(?:,|$)/y;
const rest = /[^,]*/y;

/** Splits RFC 9110 challenges into their schemes. A scheme begins where no `=` follows a token. */
function splitSchemes(header: string): ReadScheme[] {
  const schemes: ReadScheme[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const match = pattern.exec(header);
    if (match === null) return undefined;
    at = pattern.lastIndex;
    return match;
  };
  for (;;) {
    take(separators);
    if (at >= header.length) return schemes;
    const current = schemes.at(-1);
    const name = take(token)?.[0];
    if (name === undefined) {
      if (current !== undefined) current.isBroken = true;
      at += 1;
      take(rest);
    } else if (take(equals)) {
      const value = take(quoted)?.[1]?.replace(/\\(.)/gs, "$1") ?? take(token)?.[0];
      const isWhole = value !== undefined && take(end) !== undefined;
      if (!isWhole) take(rest);
      if (current === undefined) continue;
      if (isWhole) current.parameters.push([name.toLowerCase(), value]);
      else current.isBroken = true;
    } else {
      schemes.push({ scheme: name, parameters: [], isBroken: false });
      take(token68);
    }
  }
}
