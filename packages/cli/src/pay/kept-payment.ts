import { open, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { type SignedPayment, signedPaymentSchema } from "@coinslot/client";
import type { SettleResponse } from "@coinslot/protocol";
import * as z from "zod";
import { UsageError } from "../exit-code.ts";
import type { PayContext } from "./pay-context.ts";
import type { BuyerRequest } from "./read-request.ts";

const keptSchema = z.object({
  request: z.object({
    method: z.string(),
    url: z.url(),
    headers: z.array(z.tuple([z.string(), z.string()])),
    bodyBase64: z.string().optional(),
  }),
  payment: signedPaymentSchema,
  /** The seller's receipt, if it has sent one: for who looks into the file. */
  receipt: z.unknown().optional(),
});

/** A payment whose outcome was unclear, with the request that it was made for. */
export interface KeptPayment {
  file: string;
  request: BuyerRequest;
  payment: SignedPayment;
}

/** What a file keeps. */
interface PaymentToKeep {
  request: BuyerRequest;
  payment: SignedPayment;
  receipt?: SettleResponse | undefined;
}

/** Keeps a payment, whole, in a file that only its owner can read; always in the same one. Returns the file. */
export async function keepPayment(
  { io }: PayContext,
  { request, payment, receipt }: PaymentToKeep,
): Promise<string> {
  const { folder } = io;
  const { body, ...rest } = request;
  const bodyBase64 = body && Buffer.from(body).toString("base64");
  const text = `${JSON.stringify({ request: { ...rest, bodyBase64 }, payment, receipt }, undefined, 2)}\n`;
  const name = `coinslot-payment-${payment.terms.nonce.slice(2, 18)}.json`;
  return writeFirst([join(folder, name), join(tmpdir(), name)], text);
}

/** Keeps a payment, and says how to go on with it. Never throws: what became of the payment is to be told in any case. */
export async function keepForResume(context: PayContext, kept: PaymentToKeep): Promise<string> {
  const { folder } = context.io;
  const warning = "Do not request it anew, which could pay twice.";
  try {
    const file = await keepPayment(context, kept);
    const shown = file.startsWith(folder) ? relative(folder, file) : file;
    return `${warning} From this folder, the same request is not paid a second time without asking. Go on with: coinslot pay --resume ${shown}`;
  } catch {
    const until = new Date(kept.payment.terms.validBefore * 1000).toISOString();
    return `${warning} It can be taken until ${until}, and could not be kept in a file to go on with.`;
  }
}

/** In the folder at hand, or, where nothing can be written there, elsewhere. */
async function writeFirst(files: readonly string[], text: string): Promise<string> {
  const faults: unknown[] = [];
  for (const file of files) {
    try {
      await writeWhole(file, text);
      return file;
    } catch (error) {
      faults.push(error);
    }
  }
  throw new AggregateError(faults, "The payment could not be kept in a file");
}

// A full disk or a crash leaves nothing under the name that somebody would go on with: only what is complete gets it.
async function writeWhole(file: string, text: string): Promise<void> {
  const temporary = `${file}.tmp`;
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** @throws UsageError when the file cannot be read, or holds something else */
export async function readKeptPayment(name: string, folder: string): Promise<KeptPayment> {
  const file = resolve(folder, name);
  try {
    const { request, payment } = keptSchema.parse(JSON.parse(await readFile(file, "utf8")));
    const { bodyBase64, ...rest } = request;
    const body = bodyBase64 === undefined ? undefined : Buffer.from(bodyBase64, "base64");
    return { file, request: { ...rest, body }, payment };
  } catch (cause) {
    throw new UsageError(`${name} is no payment that was kept.`, { cause });
  }
}

/** For a payment that has come to its end. A file that is gone already is no failure: what was paid is paid. */
export async function forgetPayment(file: string): Promise<void> {
  await rm(file, { force: true });
}
