import { type BudgetAsset, createPayingFetch, type PaymentTerms } from "@coinslot/client";
import { findNetworks, isHttpUrl } from "@coinslot/hosting/environment";
import { findKnownToken, knownAsset, type Network } from "@coinslot/protocol";
import { channelFile } from "../channels/channel-file.ts";
import { UnclearError } from "../exit-code.ts";
import { concludePayment } from "./conclude-payment.ts";
import { explainFailure } from "./explain-failure.ts";
import { isExpiredUnused } from "./is-expired-unused.ts";
import { forgetPayment, type KeptPayment } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";

/**
 * Sends a payment again, with the request that it was made for. Signs nothing: it needs no wallet.
 * Without an answer, it is given up when it was never taken and cannot be any more
 * (`isExpiredUnused`).
 */
export async function resumePayment(given: PayContext, kept: KeptPayment): Promise<void> {
  const context = { ...given, keptFile: kept.file };
  const { terminal, io, allowInsecureHttp } = context;
  const { request, payment } = kept;
  const { network, payer } = payment.terms;
  const known = knownAsset(network);
  const payingFetch = createPayingFetch({
    account: {
      address: payer,
      async signTypedData() {
        throw new Error("A payment that is resumed is signed already");
      },
    },
    // The payment exists, and the seller decides. Only a receipt of MPP needs the chain.
    rpcUrls: { [network]: rpcUrlsOf(terminal.env, network) },
    allowInsecureHttp,
    budget: { assets: [roomFor(payment.terms)] },
    channels: payment.terms.channel && { file: channelFile(io, undefined) },
  });
  const { method, url, headers, body } = request;
  const init: RequestInit = { method, headers, signal: terminal.signal };
  if (body) init.body = new Blob([body]);
  const stopWaiting = io.showWaiting(`asking ${new URL(url).host}`);
  try {
    const response = await payingFetch.resume(payment, url, init);
    stopWaiting();
    const tokens = known ? [{ network, ...known }] : [];
    const conclusion = await concludePayment(context, { request, response, tokens });
    if (conclusion === "ended") await forgetPayment(context, kept.file);
  } catch (error) {
    stopWaiting();
    const explained = await explainFailure(context, { request, error, sent: payment });
    if (explained instanceof UnclearError && (await isGivenUp(context, payment.terms))) {
      await forgetPayment(context, kept.file);
      const words = "The payment was never taken, and has expired";
      throw new Error(`${words}. It may be requested again.`, { cause: error });
    }
    throw explained;
  }
}

/** One node alone never ends a payment: it takes its answer and a person's. */
async function isGivenUp(context: PayContext, terms: PaymentTerms): Promise<boolean> {
  const { terminal, io, isSilent } = context;
  const verdict = await isExpiredUnused(terminal.env, terms, io);
  if (verdict !== "one node") return verdict === "yes";
  const text =
    "By the RPC endpoints of one host only, the payment was never taken, and has expired.";
  if (isSilent || terminal.confirm === undefined) {
    terminal.err(
      `${text} To give it up, confirm without --yes, or add an endpoint of another host.`,
    );
    return false;
  }
  terminal.err(text);
  return terminal.confirm("Give it up?");
}

/** One that is missing or malformed stops no resume: the payment may have been taken. */
function rpcUrlsOf(env: PayContext["terminal"]["env"], network: Network): readonly string[] {
  const configured = findNetworks(env, () => undefined).find((each) => each.network === network);
  const rpcUrls = configured?.rpcUrls.filter(isHttpUrl) ?? [];
  return rpcUrls.length > 0 ? rpcUrls : ["http://localhost"];
}

/** A budget for one payment, the one agreed to when it was signed. */
function roomFor({ network, asset: address, amount }: PaymentTerms): BudgetAsset {
  const asset = findKnownToken(network, address) ?? {
    address,
    name: "token",
    version: "1",
    decimals: 0,
  };
  const most = BigInt(amount);
  return { network, ...asset, limits: { perPayment: most, perHost: most, perDay: most } };
}
