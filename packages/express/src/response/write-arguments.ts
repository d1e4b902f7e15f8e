import { types } from "node:util";

/** Arguments of a response's `write` and `end`. */
export interface WriteArguments {
  chunk: unknown;
  encoding: BufferEncoding | undefined;
  callback: (() => void) | undefined;
}

/** `(chunk, encoding, callback)`, of which any may be left out. */
export function readArguments(written: readonly unknown[]): WriteArguments {
  const callback = written.find(isCallback);
  const [chunk, encoding] = written.filter((argument) => argument !== callback);
  return {
    chunk,
    encoding: typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : undefined,
    callback,
  };
}

function isCallback(value: unknown): value is () => void {
  return typeof value === "function";
}

/** @throws TypeError for a chunk that Node would not write */
export function toBytes(chunk: unknown, encoding: BufferEncoding | undefined): Buffer {
  if (typeof chunk === "string") return Buffer.from(chunk, encoding);
  // Of any realm, as Node. A copy: the handler may use its buffer again.
  if (types.isUint8Array(chunk)) return Buffer.from(chunk);
  throw new TypeError("A response is written in strings, Buffers and Uint8Arrays");
}
