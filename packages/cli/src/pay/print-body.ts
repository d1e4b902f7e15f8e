import { writing } from "./output-error.ts";
import type { PayContext } from "./pay-context.ts";

const lineFeed = 0x0a;

/**
 * Prints a body as it arrives, of any length. On a terminal the receipt begins a line; the body
 * stays as it is.
 *
 * @throws OutputError when it cannot be written; else the error of reading the body
 */
export async function printBody(
  { terminal, io }: PayContext,
  chunks: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  let last: number | string | undefined;
  for await (const chunk of chunks) {
    await writing(() => io.write(chunk));
    last = chunk.at(-1) ?? last;
  }
  if (last !== undefined && last !== lineFeed && last !== "\n") terminal.err("");
}
