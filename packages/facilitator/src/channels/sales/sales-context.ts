import type { Address, Network } from "@coinslot/protocol";
import type { RecoverSigner } from "../../evm/recover-signer.ts";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import type { AnswerQuotas } from "../../ledger/payments/answer-quotas.ts";
import type { ChannelDigests } from "../../schemes/batch-settlement/channel-digests.ts";
import type { ChannelMetrics } from "../../settle/channel-metrics.ts";
import type { StopBoard } from "../../stops/stop-board.ts";
import type { ChannelDeposits } from "../deposits/channel-deposits.ts";
import type { NetworkRefunds } from "../refunds/start-channel-refunds.ts";
import type { ChannelObserver, ObservedChannel } from "../watch/observed-channel.ts";
import type { ChannelLanes } from "./channel-lanes.ts";
import type { ChannelLeases } from "./channel-leases.ts";
import type { DeliveryMarks } from "./delivery-marks.ts";
import type { LookLimit } from "./look-limit.ts";
import type { OwingSigners } from "./owing-signers.ts";
import type { RunLimit } from "./run-limit.ts";
import type { SeenChannels } from "./seen-channels.ts";

/** The channels of one network. */
export interface ChannelNetwork {
  network: Network;
  /** The escrow contract. Lower case. */
  contract: Address;
  /** The key that signs claims. Lower case. */
  receiverAuthorizer: Address;
  digests: ChannelDigests;
  observer: ChannelObserver;
  /** `undefined`: no deposits are executed. */
  deposits?: ChannelDeposits | undefined;
  /** `undefined`: none are made. */
  refunds?: NetworkRefunds | undefined;
  /** Room for kept answers, by signer and channel. */
  quotas: AnswerQuotas;
  owing: OwingSigners;
}

/** Shared by the sales of a process. */
export interface SalesContext {
  ledger: LedgerContext;
  networks: ReadonlyMap<Network, ChannelNetwork>;
  recoverSigner: RecoverSigner;
  lanes: ChannelLanes;
  marks: DeliveryMarks;
  leases: ChannelLeases;
  /** By signer: a channel can be opened in the name of any payer. */
  freeRuns: RunLimit;
  /** Looks at the chain for channels that this process has not seen. */
  looks: LookLimit;
  /** Channels with money that this process has seen: a look at them costs nothing. */
  seenChannels: SeenChannels;
  stops: Pick<StopBoard, "refusalOf">;
  /** Counts what is charged, and taken back. */
  metrics: Pick<ChannelMetrics, "charged" | "lowered">;
  /** Makes the name of a charge: no two share one. */
  createId: () => string;
  /** Resolves after a time. */
  pause: (ms: number) => Promise<void>;
  /** Test hook: called at named points between commits. */
  faultPoint: (point: ChannelFaultPoint) => Promise<void>;
}

/** A point between two commits, at which a process may die. */
export type ChannelFaultPoint = "channel_admitted" | "channel_charged" | "channel_lowered";

/** A request that has its channel, until it ends. */
export interface ServedChannel {
  key: ChannelKey;
  signer: Address;
  state: ObservedChannel["state"];
  quotas: AnswerQuotas;
  /** Lets the next request of the channel go on; harmless when repeated. */
  leave: () => void;
}
