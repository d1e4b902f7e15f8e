import { createSingleFlight } from "@coinslot/concurrency";
import { type Address, toLowerHex } from "@coinslot/protocol";
import { getAddress } from "viem";
import { leaseNameOf, relayerPrefix } from "../../ledger/relayer-lease.ts";
import { findOpenRelayers } from "../../ledger/transactions/find-transactions.ts";
import { giveUpTransactions } from "../../ledger/transactions/settle-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { createRelayer, stopRelayer } from "../relay/relayer.ts";
import type { Relayer, RelayerOptions } from "../relay/relayer-context.ts";
import type { RelayerSigner } from "../relay/relayer-signer.ts";

interface RetiredRelayersOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  /** The relayers that this process plans for, if it gets their leases. */
  active: readonly Address[];
  /** Their keys are here, to be taken out once nothing is in flight. */
  retiring: readonly RelayerSigner[];
  /** True if this process looks for relayers without a key, for all that share the ledger. */
  isReader: () => boolean;
  onRequeued: RelayerOptions["onRequeued"];
  /** Called when a lease is free: a process that plans for that relayer may take it. */
  onGivenBack: () => void;
}

/**
 * The relayers that take no new payments, as far as this process follows what they have sent.
 *
 * ```text
 *   retiring   its key is here      held while the ledger has open transactions of it: they are
 *                                   resent, replaced, and gaps before them are filled
 *   keyless    no process holds     held by the reader, or by who began, while the ledger has open
 *              the relayer's lease  transactions of it: they are resent, as they were signed. It
 *                                   begins after half of `leaseMs`: a lease may be on its way
 * ```
 *
 * A keyless relayer has a lease of its own name, and writes nothing that the relayer's lease
 * guards. So a process that gets the key takes the relayer at once. Until the next look both
 * follow it: they resend what is stored, and write what the chain says, each guarded by the state
 * before.
 */
export interface RetiredRelayers {
  all(): readonly Relayer[];
  /** Compares the ledger's open transactions with what is followed. */
  look(): void;
  /** Resolves when the retiring ones are reconciled, here or by the holder of their lease. */
  whenReconciled(): Promise<void>;
  stop(): Promise<void>;
}

interface Retired extends RetiredRelayersOptions {
  retiringRelayers: ReadonlyMap<Address, Relayer>;
  keyless: Map<Address, Relayer>;
  /** Relayers without a holder, and when each look in a row has found that first, by this clock. */
  freeSince: ReadonlyMap<Address, number>;
}

/** Starts to follow them, with the first look. */
export function createRetiredRelayers(options: RetiredRelayersOptions): RetiredRelayers {
  const { context, network, retiring } = options;
  const { logger } = context;
  const retired: Retired = {
    ...options,
    retiringRelayers: new Map(
      retiring.map((signer) => [
        toLowerHex(signer.address),
        follow(options, signer.address, signer),
      ]),
    ),
    keyless: new Map(),
    freeSince: new Map(),
  };
  const all = () => [...retired.retiringRelayers.values(), ...retired.keyless.values()];
  const looking = createSingleFlight(async () => {
    try {
      await compare(retired);
    } catch (err) {
      logger.warn(
        { err, network: network.network },
        "the ledger's open transactions could not be read; retrying",
      );
    }
  });
  return {
    all,
    look: looking.trigger,
    async whenReconciled() {
      await Promise.all([...retired.retiringRelayers.values()].map(({ settled }) => settled));
    },
    async stop() {
      await looking.stop();
      await Promise.all(all().map(stopRelayer));
    },
  };
}

function follow(
  { context, network, onRequeued, onGivenBack }: RetiredRelayersOptions,
  address: Address,
  signer: RelayerSigner | undefined,
): Relayer {
  const ignore = () => undefined;
  return createRelayer({
    context,
    network,
    address,
    signer,
    onRequeued,
    onGivenBack,
    onReconciled: ignore,
    onCapacity: ignore,
    onReleased: ignore,
    onInsufficientFunds: ignore,
  });
}

async function compare(retired: Retired): Promise<void> {
  const { context, network, active, retiringRelayers, keyless } = retired;
  const isReader = retired.isReader();
  if (retiringRelayers.size === 0 && keyless.size === 0 && !isReader) return;
  const open = new Set(await findOpenRelayers(context.ledger, network.network));
  for (const [address, relayer] of retiringRelayers) {
    if (open.has(address)) await relayer.keeper.take();
    else await giveBack(relayer);
    // Another process has it: it reconciles what was not final.
    if (relayer.state.lease === undefined) relayer.resolveSettled();
  }
  const known = new Set([...active.map(toLowerHex), ...retiringRelayers.keys()]);
  const foreign = [...open].filter((address) => !known.has(address));
  const free = foreign.length === 0 ? [] : await withoutHolder(retired, foreign);
  const now = context.clock.now();
  retired.freeSince = new Map(
    free.map((address) => [address, retired.freeSince.get(address) ?? now]),
  );
  for (const [address, since] of retired.freeSince) {
    const isFollowed = keyless.get(address)?.state.lease !== undefined;
    const isDue = isReader && now - since >= context.times.leaseMs / 2;
    if (isFollowed || isDue) await followKeyless(retired, address);
  }
  for (const [address, relayer] of keyless) {
    if (free.includes(address) && relayer.state.lease) continue;
    keyless.delete(address);
    await stopRelayer(relayer);
    context.logger.info(relayer.labels, "a relayer without a key is followed here no longer");
  }
}

/** The relayers that no process with their keys holds. */
async function withoutHolder(
  { context, network }: Retired,
  addresses: readonly Address[],
): Promise<Address[]> {
  const standing = await context.ledger.leases.list([relayerPrefix(network.network)]);
  const held = new Set(standing.flatMap(({ name, isHeld }) => (isHeld ? [name] : [])));
  return addresses.filter(
    (relayer) => !held.has(leaseNameOf({ network: network.network, relayer })),
  );
}

async function followKeyless(retired: Retired, address: Address): Promise<void> {
  const { context, network, keyless } = retired;
  const followed = keyless.get(address);
  const relayer = followed ?? follow(retired, getAddress(address), undefined);
  await relayer.keeper.take();
  if (relayer.state.lease === undefined) {
    // Another process has begun to follow it.
    if (followed === undefined) await stopRelayer(relayer);
    return;
  }
  if (followed === undefined) {
    keyless.set(address, relayer);
    context.logger.warn(
      relayer.labels,
      "no process has the key of a relayer with open transactions: they are followed, and sent again as they are",
    );
  }
  await giveUpTransactions(context.ledger, { network: network.network, relayer: address });
}

async function giveBack(relayer: Relayer): Promise<void> {
  if (relayer.state.lease === undefined) return;
  await relayer.keeper.giveBack();
  relayer.onGivenBack();
}
