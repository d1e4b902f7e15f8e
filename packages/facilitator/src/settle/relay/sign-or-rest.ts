import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import type { Relayer } from "./relayer-context.ts";
import { SignerError } from "./relayer-signer.ts";
import { signBroadcast } from "./sign-broadcast.ts";

type Signing = Pick<Relayer, "context" | "labels">;

/** Signs a form, or logs that the relayer's signer did not: then other relayers go on. */
export async function signOrRest(
  relayer: Signing,
  options: Parameters<typeof signBroadcast>[0],
): Promise<Broadcast | undefined> {
  try {
    return await signBroadcast(options);
  } catch (error) {
    if (!(error instanceof SignerError)) throw error;
    reportSigner(relayer, error);
    return undefined;
  }
}

/** A resting signer repeats its failure to each caller. */
const reported = new WeakSet<SignerError>();

/** Logs and counts the failure of a signer, once. */
export function reportSigner({ context, labels }: Signing, err: SignerError): void {
  if (reported.has(err)) return;
  reported.add(err);
  context.metrics.signerFailures.inc({ ...labels, kind: err.kind });
  context.logger.error(
    { err, ...labels },
    "the relayer's signer did not sign: the relayer rests, and nothing was sent",
  );
}
