import type { ChainsList } from "../chains-operation.ts";
import type { RelayersList } from "../relayers-operation.ts";
import type { SellerView } from "../seller-view.ts";
import { attention } from "./find-attention.ts";
import type { Attention } from "./today-result.ts";

const weekDays = 7;
const gibibyte = 2 ** 30;

/** Everything that relayers, chains and the running process show to need a person. */
export async function findInProcess(
  seller: SellerView | undefined,
  { relayers, chains }: Pick<RelayersList, "relayers"> & Pick<ChainsList, "chains">,
): Promise<Attention[]> {
  const disk = await seller?.disk().catch(() => undefined);
  return [
    ...(seller?.obstacles() ?? []).map((detail) => attention("ledger_failing", { detail })),
    ...(disk !== undefined && isNearlyFull(disk)
      ? [
          attention("disk_nearly_full", {
            detail: `${(disk.freeBytes / gibibyte).toFixed(1)} GiB are free`,
          }),
        ]
      : []),
    ...relayers.flatMap(findOfRelayer),
    ...chains.flatMap(findOfChain),
  ];
}

/** Less than 1 GiB, or a twentieth of the disk if that is less. */
function isNearlyFull({ freeBytes, totalBytes }: { freeBytes: number; totalBytes: number }) {
  return freeBytes < Math.min(gibibyte, totalBytes / 20);
}

function findOfRelayer(relayer: RelayersList["relayers"][number]): Attention[] {
  const { network, relayer: subject, state, daysLeft, inFlight, amount, symbol } = relayer;
  const found: Attention[] = [];
  const detail = amount === null ? null : `${amount} ${symbol} are left`;
  if (state === "keyless" && inFlight > 0) {
    found.push(attention("relayer_keyless", { network, subject, count: inFlight }));
  }
  if (relayer.signerFault !== null) {
    found.push(attention("signer_failing", { network, subject, detail: relayer.signerFault }));
  }
  if (state !== "active") return found;
  if (relayer.isExhausted) found.push(attention("relayer_exhausted", { network, subject, detail }));
  else if (relayer.isLow || (daysLeft !== null && daysLeft < weekDays)) {
    const lasts = daysLeft === null ? detail : `${detail}, for ${daysLeft} days`;
    found.push(attention("relayer_low", { network, subject, detail: lasts }));
  }
  return found;
}

function findOfChain({ network, endpoints, ...chain }: ChainsList["chains"][number]): Attention[] {
  const failing = endpoints.filter(({ state }) => state === "resting" || state === "wrong-chain");
  // A process that has sent nothing yet has not reached anything.
  const isDown = endpoints.length > 0 && failing.length === endpoints.length;
  return [
    ...(isDown || chain.isStalled ? [attention("chain_stalled", { network })] : []),
    ...failing.map(({ endpoint, host, state, lastFailure }) =>
      attention("endpoint_failing", {
        network,
        subject: `endpoint ${endpoint}: ${host}`,
        detail: lastFailure ?? state,
      }),
    ),
  ];
}
