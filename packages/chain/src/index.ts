export type { BlockHeader } from "./block-header.ts";
export { blockByHash, blockByNumber, parseBlockHeader } from "./block-header.ts";
export type {
  BlockEvent,
  BlockListener,
  BlockWatcher,
  BlockWatcherOptions,
  BlockWatcherStatus,
} from "./block-watcher.ts";
export { createBlockWatcher } from "./block-watcher.ts";
export type { CallBatcher, CallBatcherOptions } from "./call-batcher.ts";
export { createCallBatcher } from "./call-batcher.ts";
export type { ChainPreset, FeeModel } from "./chain-presets.ts";
export { chainPresets, getChainPreset, MULTICALL3_ADDRESS } from "./chain-presets.ts";
export type { Clock } from "./clock.ts";
export { sleep, systemClock } from "./clock.ts";
export type { HttpAnswer, HttpPost, HttpPostRequest } from "./http-post.ts";
export { httpPost, NotConnectedError } from "./http-post.ts";
export type { EndpointState } from "./rpc-endpoint.ts";
export type { RpcCall } from "./rpc-envelope.ts";
export type { EndpointFailureKind, EndpointProblem } from "./rpc-errors.ts";
export {
  RpcClosedError,
  RpcEndpointError,
  RpcError,
  RpcNotReadyError,
  RpcResponseError,
  RpcUnavailableError,
  RpcWrongChainError,
} from "./rpc-errors.ts";
export { isRepeatable } from "./rpc-methods.ts";
export type { RpcEndpointStatus, RpcPool, RpcPoolEvent, RpcPoolOptions } from "./rpc-pool.ts";
export { createRpcPool } from "./rpc-pool.ts";
export type {
  RpcEndpointHandle,
  RpcOutcome,
  RpcRequester,
  RpcRequestOptions,
} from "./rpc-requester.ts";
export type { BroadcastOutcome } from "./send-raw-transaction.ts";
export { sendRawTransaction } from "./send-raw-transaction.ts";
export { createChainClient, viemTransport } from "./viem-client.ts";
