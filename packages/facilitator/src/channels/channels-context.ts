import type { ChannelContract } from "../ledger/channels/channel-state.ts";
import type { ChannelMetrics } from "../settle/channel-metrics.ts";
import type { SettlementContext } from "../settle/context.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import type { ChannelSettings } from "./channel-settings.ts";

/** Shared by the parts that move money of the escrow of one network, for any seller. */
export interface EscrowContext {
  context: SettlementContext;
  settlement: NetworkSettlement;
  metrics: ChannelMetrics;
  /** Network and contract, as the ledger names them. */
  place: ChannelContract;
}

/** Shared by the parts that follow the channels of one network that this ledger sells by. */
export interface ChannelsContext extends EscrowContext {
  settings: ChannelSettings;
}
