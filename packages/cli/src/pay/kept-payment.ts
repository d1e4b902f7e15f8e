import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { type SignedPayment, signedPaymentSchema } from "@coinslot/client";
import { z } from "zod";
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
});

/** A payment whose outcome was unclear, with the request that it was made for. */
export interface KeptPayment {
  file: string;
  request: BuyerRequest;
  payment: SignedPayment;
}

/** Keeps a payment in a file that only its owner can read, unless it is kept already. Returns the file. */
export async function keepPayment(
  { surroundings }: PayContext,
  { request, payment }: { request: BuyerRequest; payment: SignedPayment },
): Promise<string> {
  const { folder } = surroundings;
  const { body, ...rest } = request;
  const bodyBase64 = body && Buffer.from(body).toString("base64");
  const text = `${JSON.stringify({ request: { ...rest, bodyBase64 }, payment }, undefined, 2)}\n`;
  const name = `coinslot-payment-${payment.terms.nonce.slice(2, 18)}.json`;
  return writeFirst([join(folder, name), join(tmpdir(), name)], text);
}

/** Keeps a payment, unless it is kept already, and says how to go on with it. */
export async function keepForResume(
  context: PayContext,
  kept: { request: BuyerRequest; payment: SignedPayment },
): Promise<string> {
  const { folder } = context.surroundings;
  const file = await keepPayment(context, kept);
  const shown = file.startsWith(folder) ? relative(folder, file) : file;
  return `Do not request it anew, which could pay twice. Go on with: coinslot pay --resume ${shown}`;
}

/** In the folder at hand, or, where nothing can be written there, elsewhere. */
async function writeFirst(files: readonly string[], text: string): Promise<string> {
  const faults: unknown[] = [];
  for (const file of files) {
    try {
      await writeFile(file, text, { flag: "wx", mode: 0o600 });
      return file;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return file;
      faults.push(error);
    }
  }
  throw new AggregateError(faults, "The payment could not be kept in a file");
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
