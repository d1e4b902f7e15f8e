import { existsSync, realpathSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type SignedPayment, signedPaymentSchema } from "@coinslot/client";
import { readRegularFile } from "@coinslot/hosting/environment";
import type { SettleResponse } from "@coinslot/protocol";
import * as z from "zod";
import { quote } from "../completion/quote.ts";
import { UsageError } from "../exit-code.ts";
import type { PayContext } from "./pay-context.ts";
import { printable } from "./printable.ts";
import type { BuyerRequest } from "./read-request.ts";
import { isSearched, keptNameOf, maxKeptBytes } from "./search-kept.ts";

const keptSchema = z.object({
  request: z.object({
    method: z.string(),
    url: z.url(),
    headers: z.array(z.tuple([z.string(), z.string()])),
    bodyBase64: z.string().optional(),
  }),
  payment: signedPaymentSchema,
  /** The seller's receipt, if it has sent one: for a reader of the file. */
  receipt: z.unknown().optional(),
});

/** A payment whose outcome was unclear, with the request that it was made for. */
export interface KeptPayment {
  file: string;
  request: BuyerRequest;
  payment: SignedPayment;
}

/** Content of a file. */
interface PaymentToKeep {
  request: BuyerRequest;
  payment: SignedPayment;
  receipt?: SettleResponse | undefined;
}

/**
 * Keeps a payment, whole, in a file that only its owner can read. It is the one that holds it
 * already, else one in the current folder or, where that is read-only, elsewhere. Returns the file.
 *
 * @throws Error when no place is writable
 */
export async function keepPayment(
  { io, keptFile }: PayContext,
  { request, payment, receipt }: PaymentToKeep,
): Promise<string> {
  const { folder, temporaryFolder } = io;
  const { body, ...rest } = request;
  const bodyBase64 = body && Buffer.from(body).toString("base64");
  const text = `${JSON.stringify({ request: { ...rest, bodyBase64 }, payment, receipt }, undefined, 2)}\n`;
  const name = keptNameOf(payment.terms);
  const elsewhere = [join(folder, name), join(temporaryFolder, name)];
  if (keptFile === undefined) return writeFirst(elsewhere, text);
  try {
    await writeWhole(keptFile, text, { mayReplace: true });
    return keptFile;
  } catch {
    // A full disk, for one. A second copy would have to be ended apart from the first.
    if (isKeptIn(keptFile, payment)) return keptFile;
    return writeFirst(elsewhere, text);
  }
}

/**
 * Keeps a payment, and returns how to go on with it. Never throws: the payment's fate must be
 * reported in any case.
 */
export async function keepForResume(context: PayContext, kept: PaymentToKeep): Promise<string> {
  const { folder } = context.io;
  const warning = "Do not request it again, which could pay twice.";
  try {
    const file = await keepPayment(context, kept);
    const effect = (await isSearched(file, context.io))
      ? "From this folder, the same request is not paid a second time without a prompt."
      : "A file of another name, folder or owner does not prevent that.";
    return `${warning} ${effect} Resume with: ${howToResume(file, folder)}`;
  } catch {
    const until = new Date(kept.payment.terms.validBefore * 1000).toISOString();
    return `${warning} It can be taken until ${until}, and could not be kept in a file to resume.`;
  }
}

/** The command that resumes a payment, for a shell in the folder. */
export function howToResume(file: string, folder: string): string {
  const shown = dirname(file) === folder ? basename(file) : file;
  return `coinslot pay --resume ${/^[\w./-]+$/.test(shown) ? shown : quote(shown)}`;
}

function isKeptIn(file: string, { terms }: SignedPayment): boolean {
  try {
    return readKeptPayment(file, "").payment.terms.nonce === terms.nonce;
  } catch {
    return false;
  }
}

/** Writes to the first writable file. */
async function writeFirst(files: readonly string[], text: string): Promise<string> {
  const faults: unknown[] = [];
  for (const file of files) {
    try {
      await writeWhole(file, text, { mayReplace: false });
      return file;
    } catch (error) {
      faults.push(error);
    }
  }
  const whys = faults.map((fault) => (fault instanceof Error ? fault.message : String(fault)));
  const message = `The payment could not be kept in a file, so it was not sent: ${whys.join("; ")}`;
  throw new AggregateError(faults, message);
}

// Atomic rename: after a full disk or a crash, only a complete file has the name to resume from.
// A seller of MPP chooses the nonce, and with it the name: no payment replaces another one that is
// kept. The temporary file excludes a second writer from the check to the rename.
async function writeWhole(
  file: string,
  text: string,
  { mayReplace }: { mayReplace: boolean },
): Promise<void> {
  const temporary = `${file}.tmp`;
  // Outside: what another writer holds is not removed here.
  const handle = await open(temporary, "wx", 0o600);
  try {
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (!mayReplace && existsSync(file)) throw new Error(`${file} holds another payment`);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/**
 * Reads a kept payment. A link to it names the file itself, so that it is kept once.
 *
 * @throws UsageError when the file cannot be read, or holds something else
 */
export function readKeptPayment(name: string, folder: string): KeptPayment {
  try {
    const file = realpathSync(resolve(folder, name));
    const { request, payment } = keptSchema.parse(JSON.parse(readRegularFile(file, maxKeptBytes)));
    const { bodyBase64, ...rest } = request;
    const body = bodyBase64 === undefined ? undefined : Buffer.from(bodyBase64, "base64");
    return { file, request: { ...rest, body }, payment };
  } catch (cause) {
    throw new UsageError(`${name} is not a kept payment.`, { cause });
  }
}

/**
 * Removes the file of a payment that has come to its end. Never throws: what was paid is paid. A
 * file of another user stays in a folder where each removes only its own.
 */
export async function forgetPayment({ terminal }: PayContext, file: string): Promise<void> {
  try {
    await rm(file, { force: true });
  } catch (error) {
    const why = printable(error instanceof Error ? error.message : String(error));
    terminal.err(`The payment is at its end, and its file could not be removed: ${why}.`);
  }
}
