import type { Clock } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import type { Address, Hex } from "@coinslot/protocol";
import type { ChannelContract } from "../../ledger/channels/channel-state.ts";
import { findOwingSigners, owesElsewhere } from "../../ledger/channels/owing.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import type { Logger } from "../../logger.ts";

/** Signers of one network that owe for what was lost. */
export interface OwingSigners {
  /**
   * Whether a signer owes on another channel than this one. For a signer that owes nothing, the
   * ledger is not asked.
   *
   * @throws DatabaseError
   */
  owes(signer: Address, channelId: Hex): Promise<boolean>;
}

/** The set is read again, beside the requests, once it is so old. */
const freshMs = 2_000;
/** A request waits for a set that is older: there was none for a while. */
const maxAgeMs = 15_000;
/** Each loss is money of the seller's, so more of them are no attack that pays. */
const maxOwing = 10_000;

/**
 * Creates the set of signers that owe. A channel's own loss is in its row, which each request
 * reads. A loss on another channel of the signer counts within `freshMs` and a read, in any
 * process.
 *
 * @param options.minLoss a smaller loss counts as none: the seller has not claimed so little
 * either
 */
export function createOwingSigners({
  ledger,
  place,
  minLoss,
  clock,
  logger,
}: {
  ledger: LedgerContext;
  place: ChannelContract;
  minLoss: bigint;
  clock: Clock;
  logger: Logger;
}): OwingSigners {
  const { network, contract } = place;
  const losses = { network, contract, minLoss: minLoss > 0n ? minLoss : 1n };
  let known: ReadonlySet<Address> = new Set();
  let readAt = Number.NEGATIVE_INFINITY;
  const reading = createSingleFlight(async () => {
    const at = clock.now();
    known = new Set(await findOwingSigners(ledger, { ...losses, limit: maxOwing }));
    readAt = at;
  });

  return {
    async owes(signer, channelId) {
      const ageMs = clock.now() - readAt;
      if (ageMs > maxAgeMs) await reading.join();
      else if (ageMs > freshMs) {
        reading.join().catch((err: unknown) => {
          logger.debug({ err, network }, "signers that owe could not be read; retrying");
        });
      }
      // It may have paid since.
      return known.has(signer) && owesElsewhere(ledger, { ...losses, signer, channelId });
    },
  };
}
