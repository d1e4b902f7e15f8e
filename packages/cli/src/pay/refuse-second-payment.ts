import { basename } from "node:path";
import type { PaymentTerms } from "@coinslot/client";
import { isSameAddress } from "@coinslot/protocol";
import { UnclearError, UsageError } from "../exit-code.ts";
import { isExpiredUnused } from "./is-expired-unused.ts";
import { forgetPayment, howToResume, type KeptPayment, readKeptPayment } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";
import type { BuyerRequest } from "./read-request.ts";
import { keptNameOf, searchKept } from "./search-kept.ts";

/**
 * Signs no second payment for a request while the first may have been taken, or still may be. The
 * first is kept in a file until that is decided. A payment that was certainly never taken is
 * removed here. A person may decide otherwise.
 *
 * @throws UnclearError without a person to ask; UsageError when the answer is no
 */
export async function refuseSecondPayment(
  context: PayContext,
  { request, terms }: { request: BuyerRequest; terms: PaymentTerms },
): Promise<void> {
  const { terminal, io, isSilent } = context;
  await refuseSecondNonce(context, terms);
  for (const kept of await findKept(context, request, terms)) {
    const { file, payment } = kept;
    const verdict = await isExpiredUnused(terminal.env, payment.terms, io);
    if (verdict === "yes") {
      await forgetPayment(context, file);
      continue;
    }
    const state = `The same request was paid before, and ${doubtOf(payment.terms, verdict)}.`;
    const how = `Resume with: ${howToResume(file, io.folder)}`;
    if (isSilent || terminal.confirm === undefined) {
      throw new UnclearError(`${state} Nothing was paid now. ${how}`);
    }
    terminal.err(`${state} ${how}`);
    if (!(await terminal.confirm("Pay a second time?"))) throw new UsageError("Nothing was paid.");
    if (verdict === "one node") await forgetPayment(context, file);
  }
}

/**
 * A seller of MPP chooses the nonce, and may repeat that of a kept payment for any request. A
 * second signature would pay by the same authorization twice, or on another chain as well.
 */
async function refuseSecondNonce({ io }: PayContext, { nonce }: PaymentTerms): Promise<void> {
  const name = keptNameOf({ nonce });
  const file = (await searchKept(io)).find((each) => basename(each) === name);
  if (file === undefined) return;
  const state = "The seller repeats a challenge that a kept payment answers.";
  const how = `Resume that one with: ${howToResume(file, io.folder)}`;
  throw new UnclearError(`${state} Nothing was paid now. ${how}`);
}

function doubtOf({ validBefore, channel }: PaymentTerms, verdict: "one node" | "unknown"): string {
  if (channel !== undefined) return "that voucher may have been charged";
  if (verdict === "one node") return "only the RPC endpoints of one host report it as never taken";
  const until = new Date(validBefore * 1000).toISOString();
  return `that payment may have been taken, or can be until ${until}`;
}

async function findKept(
  { io }: PayContext,
  request: BuyerRequest,
  { payer }: PaymentTerms,
): Promise<KeptPayment[]> {
  const files = await searchKept(io);
  // One by one: there may be many large ones.
  return files.flatMap((file) => {
    const kept = readIfKept(file, io.folder);
    if (kept === undefined || !isSameAddress(kept.payment.terms.payer, payer)) return [];
    return isSameRequest(kept.request, request) ? [kept] : [];
  });
}

function readIfKept(file: string, folder: string): KeptPayment | undefined {
  try {
    return readKeptPayment(file, folder);
  } catch {
    return undefined;
  }
}

function isSameRequest(a: BuyerRequest, b: BuyerRequest): boolean {
  const bodyOf = ({ body }: BuyerRequest) => Buffer.from(body ?? []).toString("base64");
  return (
    a.method === b.method && new URL(a.url).href === new URL(b.url).href && bodyOf(a) === bodyOf(b)
  );
}
