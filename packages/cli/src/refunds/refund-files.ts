import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { readRegularFile } from "@coinslot/hosting/environment";
import type * as z from "zod";
import { UsageError } from "../exit-code.ts";

/** A thousand refunds have 800 kB. */
const maxBytes = 4 * 2 ** 20;

/**
 * Reads a file of refunds.
 *
 * @throws UsageError when it cannot be read, or is something else
 */
export function readRefundFile<Schema extends z.ZodType>(
  schema: Schema,
  { name, folder, kind }: { name: string; folder: string; kind: string },
): z.output<Schema> {
  let text: string;
  try {
    text = readRegularFile(resolve(folder, name), maxBytes);
  } catch (cause) {
    throw new UsageError(`${name} cannot be read.`, { cause });
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new UsageError(`${name} is no file of ${kind}.`, { cause });
  }
}

/**
 * Writes a file of refunds, which only its owner can read. Replaces none.
 *
 * @throws UsageError when there is one already, Error when it cannot be written
 */
export async function writeRefundFile(
  file: string,
  folder: string,
  content: unknown,
): Promise<void> {
  const text = `${JSON.stringify(content, undefined, 2)}\n`;
  try {
    await writeFile(resolve(folder, file), text, { flag: "wx", mode: 0o600, flush: true });
  } catch (cause) {
    const exists = cause instanceof Error && "code" in cause && cause.code === "EEXIST";
    if (exists) throw new UsageError(`${file} is there already: name another file.`, { cause });
    throw new Error(`${file} cannot be written`, { cause });
  }
}
