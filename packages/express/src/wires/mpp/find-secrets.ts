import { randomBytes } from "node:crypto";
import { ConfigurationError, type ReservingFacilitator } from "@coinslot/protocol";
import { type ChallengeSecrets, ledgerSecret } from "../../mpp-options.ts";
import type { Route } from "../../routes/read-routes.ts";
import type { Settings } from "../../settings.ts";
import { mayHaveChallenge } from "./has-challenge.ts";

/**
 * The secrets of a gate's challenges: the setting's, else the ledger's, else some of this process
 * alone. Of the last it warns where routes are sold by MPP.
 *
 * Beside a setting, the ledger's secret goes on proving. A buyer who paid before there was one
 * brings its credential again for its answer: at a 402 it would pay once more. Where the setting
 * names the ledger's, it has the place that the setting gives it.
 *
 * @throws ConfigurationError where the setting names the ledger's, and there is none
 */
export async function findSecrets(options: {
  facilitator: Pick<ReservingFacilitator, "challengeSecret">;
  routes: readonly Pick<Route, "accepts" | "mpp">[];
  settings: Pick<Settings, "mpp" | "onError">;
}): Promise<ChallengeSecrets> {
  const { facilitator, routes, settings } = options;
  const { secrets, mode: usual } = settings.mpp;
  const isSold = routes.some(({ accepts, mpp: mode = usual }) =>
    accepts.some((terms) => mayHaveChallenge(terms, mode)),
  );
  if (!isSold && secrets === undefined) return randomSecrets();
  const kept = await facilitator.challengeSecret?.();
  if (secrets !== undefined) return withLedgers(secrets, kept);
  if (kept !== undefined) return [kept];
  settings.onError(
    new Error(
      "Challenges of MPP are made with a secret of this process: other processes refuse them. Set options.mpp.secrets",
    ),
  );
  return randomSecrets();
}

function withLedgers(secrets: ChallengeSecrets, kept: string | undefined): ChallengeSecrets {
  const isNamed = secrets.includes(ledgerSecret);
  if (kept === undefined) {
    if (isNamed) throw new ConfigurationError("The payment middleware", [noLedger]);
    return secrets;
  }
  const [current, ...others] = secrets.map((secret) => (secret === ledgerSecret ? kept : secret));
  return [current ?? kept, ...others, ...(isNamed ? [] : [kept])];
}

const noLedger = `options.mpp.secrets names "${ledgerSecret}", and this facilitator has no ledger here`;

function randomSecrets(): ChallengeSecrets {
  return [randomBytes(32).toString("base64url")];
}
