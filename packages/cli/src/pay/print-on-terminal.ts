import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { showUnsafe } from "../safe-text.ts";
import { writing } from "./output-error.ts";
import type { PayContext } from "./pay-context.ts";
import { printBody } from "./print-body.ts";

/**
 * Prints a body on a terminal: text with visible escapes for characters that would steer it.
 * Anything else goes into a file, since a terminal cannot show it and the buyer may not get it
 * again.
 *
 * @param name of that file, in the folder at hand
 */
export async function printOnTerminal(
  context: PayContext,
  { chunks, name }: { chunks: AsyncIterable<Uint8Array>; name: string },
): Promise<void> {
  const { terminal, io } = context;
  const iterator = chunks[Symbol.asyncIterator]();
  const rest = { [Symbol.asyncIterator]: () => iterator };
  const first = await iterator.next();
  if (first.done) return;
  if (!isText(first.value)) {
    await save(join(io.folder, name), first.value, rest);
    terminal.err(`The answer is binary. It is in the file ${name}.`);
    return;
  }
  await printBody(context, showText(first.value, rest));
}

async function* showText(
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  yield showUnsafe(decoder.decode(first, { stream: true }));
  for await (const chunk of rest) yield showUnsafe(decoder.decode(chunk, { stream: true }));
  yield showUnsafe(decoder.decode());
}

/** By the first chunk, which may end within a character. */
function isText(chunk: Uint8Array): boolean {
  if (chunk.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(chunk, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** Atomic rename: only a whole answer gets the name. */
async function save(
  file: string,
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): Promise<void> {
  const temporary = `${file}.part`;
  const handle = await writing(() => open(temporary, "wx", 0o600));
  try {
    try {
      await writing(() => handle.write(first));
      for await (const chunk of rest) await writing(() => handle.write(chunk));
    } finally {
      await handle.close();
    }
    await writing(() => rename(temporary, file));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}
