export type { FeeModel } from "@coinslot/protocol";
export { operatorOf } from "@coinslot/protocol";
export { type ChainPreset, getChainPreset } from "./chain-presets.ts";
export type { Clock } from "./clock.ts";
export { sleep, systemClock } from "./clock.ts";
export type { BlockEvent, BlockListener } from "./heads/block-event.ts";
export type { BlockHeader } from "./heads/block-header.ts";
export {
  blockByHash,
  blockByNumber,
  blockHeaderSchema,
  parseBlockHeader,
} from "./heads/block-header.ts";
export type {
  BlockWatcher,
  BlockWatcherOptions,
  BlockWatcherStatus,
} from "./heads/block-watcher.ts";
export { createBlockWatcher } from "./heads/block-watcher.ts";
export { compareHead, type HeadChange, type KnownBlock } from "./heads/compare-head.ts";
export { headerIn, readHeaders } from "./heads/read-headers.ts";
export type { CallBatcher, CallBatcherOptions } from "./rpc/call-batcher.ts";
export { createCallBatcher } from "./rpc/call-batcher.ts";
export { plausibleBlocks } from "./rpc/endpoint-order.ts";
export { endpointProblem } from "./rpc/endpoint-problem.ts";
export type { RpcEndpointStatus } from "./rpc/endpoint-status.ts";
export type { HttpAnswer, HttpPost, HttpPostRequest } from "./rpc/http-post.ts";
export { httpPost, NotConnectedError } from "./rpc/http-post.ts";
export { isRevert } from "./rpc/is-revert.ts";
export type { EndpointState } from "./rpc/rpc-endpoint.ts";
export type { RpcCall } from "./rpc/rpc-envelope.ts";
export type { EndpointFailureKind, EndpointProblem } from "./rpc/rpc-errors.ts";
export {
  RpcClosedError,
  RpcEndpointError,
  RpcError,
  RpcNotReadyError,
  RpcResponseError,
  RpcUnavailableError,
  RpcWrongChainError,
} from "./rpc/rpc-errors.ts";
export { isRepeatable } from "./rpc/rpc-methods.ts";
export type { RpcPool, RpcPoolEvent, RpcPoolOptions } from "./rpc/rpc-pool.ts";
export { createRpcPool } from "./rpc/rpc-pool.ts";
export type {
  RpcEndpointHandle,
  RpcOutcome,
  RpcRequester,
  RpcRequestOptions,
} from "./rpc/rpc-requester.ts";
export type { BroadcastOutcome } from "./rpc/send-raw-transaction.ts";
export { sendRawTransaction } from "./rpc/send-raw-transaction.ts";
export { createChainClient, viemTransport } from "./rpc/viem-client.ts";
