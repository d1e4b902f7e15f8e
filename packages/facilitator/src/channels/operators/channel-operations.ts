import { channelTotalsOperation } from "./channel-totals-operation.ts";
import { claimChannelsOperation } from "./claim-channels-operation.ts";
import { getChannelOperation } from "./get-channel-operation.ts";
import { listChannelsOperation } from "./list-channels-operation.ts";
import { refundChannelOperation } from "./refund-channel-operation.ts";

/** Commands of the operator on channels. */
export const channelOperations = [
  listChannelsOperation,
  getChannelOperation,
  channelTotalsOperation,
  claimChannelsOperation,
  refundChannelOperation,
];
