import type { KeyedMutex } from "@coinslot/concurrency";
import type { Address, Hex, HostedCaller, Network } from "@coinslot/protocol";
import type { RecoverSigner } from "../../evm/recover-signer.ts";
import type { CallerCall } from "../../ledger/channels/caller-calls.ts";
import type { ChannelDigests } from "../../schemes/batch-settlement/channel-digests.ts";
import type { StopBoard } from "../../stops/stop-board.ts";
import type { EscrowContext } from "../channels-context.ts";
import type { ChannelDeposits } from "../deposits/channel-deposits.ts";
import type { LookLimit } from "../sales/look-limit.ts";
import type { HostedChannelSettings } from "./hosted-settings.ts";

/** The escrow of one network, for callers. */
export interface HostedNetwork {
  escrow: EscrowContext;
  deposits: ChannelDeposits;
  digests: ChannelDigests;
  /** In lower case; `undefined`: every token. */
  assets: ReadonlySet<Address> | undefined;
}

/** Shared by the parts that serve callers in one process. */
export interface HostedContext {
  settings: HostedChannelSettings;
  networks: ReadonlyMap<Network, HostedNetwork>;
  recoverSigner: RecoverSigner;
  stops: Pick<StopBoard, "refusalOf">;
  /** By caller: trials that the escrow refused, which have cost a node's work. */
  trials: LookLimit;
  /** One request of a call decides at a time. */
  turns: KeyedMutex<string>;
  /**
   * Calls of each caller and network that this process has sent, and whose transactions may be
   * open.
   */
  sent: Map<string, Set<Hex>>;
  /**
   * Looks at calls: requests that wait for the same one share them, for half a poll after their
   * ends.
   */
  looks: Map<string, Promise<CallerCall | undefined>>;
  /** Resolves after a time. */
  pause: (ms: number) => Promise<void>;
}

/** A request that its caller may make. */
export interface Permit extends Pick<HostedCaller, "isGone"> {
  caller: string;
  network: HostedNetwork;
  /** When it came, by the monotonic clock. */
  begunAt: number;
}
