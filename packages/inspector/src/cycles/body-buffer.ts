import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { withoutLastWord } from "../decode/linear-forms.ts";
import type { Redactor } from "../decode/redact.ts";
import type { RecordedBody } from "./cycle.ts";

/** Collects a body up to a bound, and counts the rest. */
export interface BodyBuffer {
  add(chunk: Uint8Array): void;
  /** Its text, without its content coding; `undefined` for bytes that are none. */
  text(coding: string | undefined): string | undefined;
  /** The body for a recording. */
  record(coding: string | undefined, redactor: Redactor): RecordedBody;
}

/** Largest text of a body that was compressed: a bomb ends here. */
const maxInflatedBytes = 262_144;

/** A buffer of at most `maxBytes`. */
export function createBodyBuffer(maxBytes: number): BodyBuffer {
  const chunks: Uint8Array[] = [];
  let kept = 0;
  let bytes = 0;
  const isWhole = () => kept === bytes;

  function text(coding: string | undefined): string | undefined {
    const body = Buffer.concat(chunks);
    const plain = coding === undefined || coding === "identity" ? body : inflate(body, coding);
    if (plain === undefined || (!isWhole() && plain !== body)) return undefined;
    try {
      return new TextDecoder("utf-8", { fatal: isWhole() }).decode(plain);
    } catch {
      return undefined;
    }
  }

  return {
    add(chunk) {
      bytes += chunk.byteLength;
      const room = maxBytes - kept;
      if (room <= 0) return;
      const part = chunk.byteLength > room ? chunk.subarray(0, room) : chunk;
      // A copy: the chunk may be a view of a larger buffer, which it would keep.
      chunks.push(Uint8Array.from(part));
      kept += part.byteLength;
    },
    text,
    record(coding, redactor) {
      const whole = text(coding);
      if (whole === undefined || whole.includes("\0")) return { bytes, isWhole: bytes === 0 };
      // A secret that the bound has cut would not be known again.
      const safe = isWhole() ? whole : withoutLastWord(whole);
      return { bytes, text: redactor.body(safe), isWhole: isWhole() };
    },
  };
}

function inflate(body: Buffer, coding: string): Buffer | undefined {
  const options = { maxOutputLength: maxInflatedBytes };
  try {
    if (coding === "gzip" || coding === "x-gzip") return gunzipSync(body, options);
    if (coding === "deflate") return inflateSync(body, options);
    if (coding === "br") return brotliDecompressSync(body, options);
  } catch {
    return undefined;
  }
  return undefined;
}
