import { headerName } from "@coinslot/protocol";
import type { Header } from "../proxy/observer.ts";
import { decodedBelow, type Json, parseJson, removed } from "./header-value.ts";
import { replaceParameters, replaceWebTokens } from "./linear-forms.ts";

/** Headers whose value is decoded beside them. */
const decodedNames = new Set(
  [
    headerName.payment,
    headerName.paymentSignature,
    headerName.paymentAuthorization,
    headerName.paymentRequired,
    headerName.paymentResponse,
    headerName.paymentResponseV1,
    headerName.paymentReceipt,
  ].map((name) => name.toLowerCase()),
);

/** Names of headers, members and query parameters whose value is worth something. */
const secretName =
  /secret|passw|passphrase|mnemonic|seed|signature|credential(?!types)|cookie|session|csrf|xsrf|jwt|bearer|authoriz|idempotency|private.?key|api.?key|access.?key|auth.?(?:key|token)|(?:access|refresh|id|csrf|api|bot|device).?token/i;
/** Names that are secrets in a query or a header alone: in a body, a `token` is a coin. */
const secretShortName = /^(?:x-)?(?:key|token|sig|auth|pwd|code|k)$/i;
/** Endings of headers' names that say the same, where no cache or handshake uses the word. */
const secretEnding = /-(?:token|(?<!(?:surrogate|cache|websocket)-)key|pin|otp)$/i;

/** Texts that are secrets by their form, wherever they stand. */
const secretForms = [
  // Signatures: 64 bytes and more. Hashes, nonces and addresses are shorter.
  /0x[0-9a-f]{128,}/gi,
  /\b(?:whsec|sk_live|sk_test|rk_live|ghp|gho|xox[abp])[_-][\w+/=-]{8,}/g,
  /\b(?:bearer|basic)[ \t]+[\w.+/=~-]{6,}/gi,
];

/** A secret that is part of a longer text replaces it there; shorter ones would replace chance. */
const minLength = 6;

/** Beyond this many secrets every text is left out: each one is looked for in each text. */
const maxSecrets = 500;

/** Takes from texts all that is worth something. */
export interface Redactor {
  /** Adds texts that must not appear. */
  add(...secrets: readonly string[]): void;
  /** Reads the secrets of headers, such as those of cookies. */
  learn(headers: readonly Header[]): void;
  text(text: string): string;
  target(target: string): string;
  headers(headers: readonly Header[]): [string, string][];
  /** Members by their names, too. */
  json(value: Json): Json;
  /** A body's text: JSON and forms by the names of members, too. */
  body(text: string): string;
}

/** A redactor for one exchange. The secrets of earlier ones of its cycle are added to it. */
export function createRedactor(secrets: Set<string>): Redactor {
  let known: readonly string[] = [];

  /** Longest first: a part of a secret would spare its rest. */
  function longestFirst(): readonly string[] {
    if (known.length !== secrets.size) known = [...secrets].sort((a, b) => b.length - a.length);
    return known;
  }

  function add(...texts: readonly string[]): void {
    for (const text of texts) if (text.length >= minLength) secrets.add(text);
  }

  function redactText(text: string): string {
    if (secrets.size > maxSecrets) return removed;
    let clean = text;
    for (const secret of longestFirst()) clean = clean.replaceAll(secret, removed);
    clean = replaceWebTokens(clean, removed);
    for (const form of secretForms) clean = clean.replace(form, removed);
    return clean;
  }

  /** Values that stand under a secret's name are known from then on, wherever they are repeated. */
  function redactPairs(text: string): string {
    return replaceParameters(text, (name, value) => {
      if (value === "" || !isSecretParameter(name)) return undefined;
      add(value, safeDecode(value.replaceAll("+", " ")));
      return removed;
    });
  }

  function redactJson(value: Json): Json {
    if (typeof value === "string") return redactText(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(redactJson);
    const clean = Object.entries(value).map(([name, member]): [string, Json] => {
      return [redactText(name), isSecretMember(name, member) ? blank(member) : redactJson(member)];
    });
    // An own `__proto__` of a message stays one.
    return Object.fromEntries(clean);
  }

  /** The fields of a form in parts. */
  function redactParts(text: string): string {
    return text.replace(partForm, (part, head: string, name: string, value: string) => {
      if (value === "" || !isSecretParameter(name)) return part;
      add(value);
      return `${head}${removed}`;
    });
  }

  return {
    add,
    learn(headers) {
      for (const [name, value] of headers) {
        if (!isSecretHeader(name)) continue;
        add(value, ...value.split(/[\s;,]+/), ...value.split(/[\s;,=]+/).slice(-1));
        for (const cookie of value.split(";")) add(cookie.slice(cookie.indexOf("=") + 1).trim());
      }
    },
    text: redactText,
    target: (target) => redactText(redactPairs(target)),
    headers: (headers) =>
      headers.map(([name, value]): [string, string] => {
        const key = name.toLowerCase();
        if (decodedNames.has(key)) return [name, decodedBelow];
        if (isSecretHeader(name)) return [name, removed];
        // A URL, such as that of the page before.
        return [redactText(name), redactText(/[?#]/.test(value) ? redactPairs(value) : value)];
      }),
    json: redactJson,
    body(text) {
      if (text.startsWith("--")) return redactText(redactParts(text));
      const named = text.replace(
        // A bounded name: behind each quote, a text of escapes would be read to its end.
        /("(?:[^"\\]|\\.){0,256}")(\s*:\s*)("(?:[^"\\]|\\.)*"?)/g,
        (member, name: string, colon: string, value: string) => {
          if (!secretName.test(name)) return member;
          const plain = parseJson(value);
          add(value.slice(1, -1), ...(typeof plain === "string" ? [plain] : []));
          return `${name}${colon}"${removed}"`;
        },
      );
      const whole = parseJson(named);
      if (whole !== undefined && hasWideSecret(whole)) return JSON.stringify(redactJson(whole));
      if (/^[^\s{["<]+=/.test(named)) return redactText(redactPairs(named));
      return redactText(whole === undefined ? redactWide(named) : named);
    },
  };
}

/** One field of a form in parts (RFC 7578): its head, its name, its value. */
const partForm =
  /(\bname="([^"\r\n]{1,128})"[^\r\n]{0,512}\r?\n(?:[^\r\n]{1,512}\r?\n){0,8}\r?\n)([\s\S]*?)(?=\r?\n--|$)/g;

/** A member of JSON whose value is no text, under a secret's name. */
const wideMember = new RegExp(
  `("[^"\\\\]{0,64}(?:${secretName.source})[^"\\\\]{0,64}")(\\s*:\\s*)(\\[[^\\]]*\\]?|\\{[^}]*\\}?|-?\\d[\\d.e+-]*)`,
  "gi",
);

/** Takes such members from JSON that was cut off. */
function redactWide(text: string): string {
  return text.replace(wideMember, (member, name: string, colon: string, value: string) => {
    const isTerms = name === '"authorization"' && value.startsWith("{");
    return isTerms ? member : `${name}${colon}"${removed}"`;
  });
}

function isSecretMember(name: string, member: Json): boolean {
  // An EIP-3009 authorization is an object: without its signature it is worth nothing.
  const isTerms = name === "authorization" && typeof member === "object";
  return secretName.test(name) && !isTerms;
}

/** Returns whether a list, an object or a number stands under a secret's name. */
function hasWideSecret(value: Json): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(hasWideSecret);
  return Object.entries(value).some(([name, member]) => {
    const isWide = typeof member === "number" || (typeof member === "object" && member !== null);
    return (isWide && isSecretMember(name, member)) || hasWideSecret(member);
  });
}

function isSecretHeader(name: string): boolean {
  const key = name.toLowerCase();
  if (decodedNames.has(key)) return false;
  return (
    key === "authorization" ||
    secretName.test(key) ||
    secretShortName.test(key) ||
    secretEnding.test(key)
  );
}

function isSecretParameter(name: string): boolean {
  const plain = safeDecode(name);
  return secretName.test(plain) || secretShortName.test(plain) || /token$|key$/i.test(plain);
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The same shape, without a text. */
function blank(value: Json): Json {
  if (Array.isArray(value)) return value.map(blank);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, blank(member)]));
  }
  return value === null ? null : removed;
}
