import { contractOf } from "./bridge-world.ts";
import type { RpcProxy, RpcProxyCall } from "./rpc-proxy.ts";

export const adapter = contractOf("ethereum", "oft");
export const proxies: RpcProxy[] = [];

export const isBroadcast = ({ method }: RpcProxyCall) => method === "eth_sendRawTransaction";
