import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { findAsset } from "./spending-policy.ts";

/**
 * Books a resumed payment for as long as it can be executed. It may come from another process, or
 * from another budget.
 *
 * @param resumed.freeRoom resolves to whether there is more room than before
 * @throws PaymentError `over_budget` or `unknown_asset` when the budget has no room for it, and
 * when the budget cannot be kept. Then it is not sent.
 */
export async function bookResumed(
  { budget, chains, assets }: PayingFetchContext,
  resumed: { payment: SignedPayment; freeRoom: () => Promise<boolean> },
): Promise<void> {
  const { terms, sendTo } = resumed.payment;
  const { network, payer, nonce, validBefore } = terms;
  const id = { network, asset: terms.asset, payer, nonce };
  if (await budget.holds(id)) return;
  // A used or expired authorization moves no more tokens. Its past transfer was booked where it was
  // signed.
  if ((await chains.isExecutable({ id, validBefore })) === false) return;
  const asset = findAsset(assets, network, terms.asset);
  if (asset === undefined) {
    const text = `The budget names no token ${terms.asset} on ${network}, which the payment moves`;
    throw new PaymentError("unknown_asset", text);
  }
  const { hostname: host } = new URL(sendTo);
  const wanted = { id, validBefore, asset, amount: BigInt(terms.amount), host };
  let booked = await budget.book(wanted);
  if (!booked.ok && (await resumed.freeRoom())) booked = await budget.book(wanted);
  if (!booked.ok) throw new PaymentError("over_budget", booked.message);
  // A seller of MPP chooses the nonce, and may choose one for several tokens.
  if (booked.isNew || (await budget.holds(id))) return;
  throw new PaymentError("over_budget", "Another payment is booked under the same nonce");
}
