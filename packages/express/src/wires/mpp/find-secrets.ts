import { randomBytes } from "node:crypto";
import type { ReservingFacilitator } from "@coinslot/protocol";
import type { ChallengeSecrets } from "../../mpp-options.ts";
import type { Route } from "../../routes/read-routes.ts";
import type { Settings } from "../../settings.ts";
import { mayHaveChallenge } from "./has-challenge.ts";

/**
 * The secrets of a gate's challenges: the setting's, else the ledger's, else some of this process
 * alone. Of the last it warns where routes are sold by MPP.
 *
 * Beside a setting, the ledger's secret goes on proving: a buyer who paid before there was one
 * brings its credential again for its answer, and would pay once more at a 402.
 */
export async function findSecrets(options: {
  facilitator: Pick<ReservingFacilitator, "challengeSecret">;
  routes: readonly Pick<Route, "accepts" | "mpp">[];
  settings: Pick<Settings, "mpp" | "onError">;
}): Promise<ChallengeSecrets> {
  const { facilitator, routes } = options;
  const { mpp, onError } = options.settings;
  const isSold = routes.some(({ accepts, mpp: mode = mpp.mode }) =>
    accepts.some((terms) => mayHaveChallenge(terms, mode)),
  );
  if (!isSold) return mpp.secrets ?? randomSecrets();
  const kept = await facilitator.challengeSecret?.();
  if (mpp.secrets !== undefined) return kept === undefined ? mpp.secrets : [...mpp.secrets, kept];
  if (kept !== undefined) return [kept];
  onError(
    new Error(
      "Challenges of MPP are made with a secret of this process: other processes refuse them. Set options.mpp.secrets",
    ),
  );
  return randomSecrets();
}

function randomSecrets(): ChallengeSecrets {
  return [randomBytes(32).toString("base64url")];
}
