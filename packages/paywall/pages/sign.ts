import { formatAmount } from "@coinslot/pages/format";
import type { PayableWay } from "../src/page-data.ts";
import { isSelected, readBalance, selectChain } from "./chain.ts";
import { draftPayment, type KeptPayment, typedDataOf } from "./kept-payment.ts";
import { codeOf, type Wallet } from "./provider.ts";
import { deliver, type Purchase } from "./purchase.ts";
import { type Actions, fill, say } from "./view.ts";

/** Time that a draft must have left to be signed and settled, in seconds. */
const minDraftSeconds = 20;

/** From a click on a wallet to a signed payment, and to its delivery. */
export async function pay(purchase: Purchase, wallet: Wallet, way: PayableWay): Promise<void> {
  const { data, keep } = purchase;
  const { texts } = data;
  purchase.wallet = wallet;
  purchase.run += 1;
  const { run } = purchase;
  const isLate = () => purchase.run !== run;
  const names = { wallet: wallet.name, network: way.networkName, price: way.price };
  const actions: Actions = {
    cancel: () => {
      purchase.run += 1;
      purchase.offer();
    },
  };
  const wait = (text: string) => say(data, { mood: "busy", lines: [fill(text, names)], actions });
  const end = (text: string, values: Record<string, string> = {}): undefined => {
    purchase.offer();
    say(data, { mood: "bad", lines: [fill(text, { ...names, ...values })] });
    return undefined;
  };
  let signed: KeptPayment | undefined;
  try {
    signed = await sign();
  } catch (error) {
    if (isLate()) return;
    const { message } = Object(error) as { message?: unknown };
    const reason = typeof message === "string" ? message.slice(0, 200) : "";
    if (codeOf(error) === 4001) end(texts.declined);
    else end(texts.walletFailed, { reason });
    return;
  }
  if (signed !== undefined) return deliver(purchase, signed);

  async function sign(): Promise<KeptPayment | undefined> {
    const { provider } = wallet;
    wait(texts.connecting);
    const accounts = await provider.request({ method: "eth_requestAccounts" });
    const [account] = Array.isArray(accounts) ? accounts : [];
    if (isLate()) return undefined;
    if (!isAddress(account)) throw new Error("eth_requestAccounts");
    wait(texts.switching);
    const isThere = await selectChain(provider, way);
    if (isLate()) return undefined;
    if (!isThere) return end(texts.wrongChain);
    wait(texts.readingBalance);
    const balance = await readBalance(provider, way, account);
    if (isLate()) return undefined;
    if (balance !== undefined && balance < BigInt(way.accepted.amount)) {
      return end(texts.tooLittle, { balance: written(way, balance) });
    }
    // Its user may have switched it since.
    const isStillThere = await isSelected(provider, way);
    if (isLate()) return undefined;
    if (!isStillThere) return end(texts.wrongChain);
    const kept = keep.read();
    // Another tab of this session, or a late click: one purchase has one signature.
    if (kept?.signature !== undefined) return kept;
    const draft = isUsable(kept) ? kept : draftPayment(way, account, purchase.now());
    keep.write(draft);
    const shown =
      balance === undefined ? [] : [fill(texts.balance, { balance: written(way, balance) })];
    say(data, { mood: "busy", lines: [fill(texts.signing, names), ...shown], actions });
    const params = [account, typedDataOf(draft)];
    const signature = await provider.request({ method: "eth_signTypedData_v4", params });
    // A signature that comes late is never stored and never sent.
    if (isLate()) return undefined;
    if (!isSignature(signature)) throw new Error("eth_signTypedData_v4");
    const payment = { ...draft, signature };
    keep.write(payment);
    return payment;

    function isUsable(found: KeptPayment | undefined): found is KeptPayment {
      if (found === undefined || found.authorization.from !== account) return false;
      if (JSON.stringify(found.way.accepted) !== JSON.stringify(way.accepted)) return false;
      const secondsLeft = Number(found.authorization.validBefore) - purchase.now() / 1000;
      return secondsLeft > Math.min(minDraftSeconds, way.accepted.maxTimeoutSeconds / 2);
    }
  }
}

function written({ decimals, symbol }: PayableWay, amount: bigint): string {
  return decimals === undefined ? String(amount) : `${formatAmount(amount, decimals)} ${symbol}`;
}

function isAddress(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{40}$/i.test(value);
}

function isSignature(value: unknown): value is string {
  return typeof value === "string" && /^0x(?:[0-9a-f]{2}){65,4096}$/i.test(value);
}
