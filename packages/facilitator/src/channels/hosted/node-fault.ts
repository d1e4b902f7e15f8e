import { RpcError } from "@coinslot/chain";
import { BaseError } from "viem";
import * as z from "zod";
import { SignerError } from "../../settle/relay/relayer-signer.ts";
import { isStateMissing } from "../watch/read-channels.ts";

/** True where a node, or a key elsewhere, is at fault: the same request may come again. */
export function isNodeFault(error: unknown): boolean {
  const isUnreadable = error instanceof z.ZodError || error instanceof BaseError;
  return (
    error instanceof RpcError ||
    error instanceof SignerError ||
    isUnreadable ||
    isStateMissing(error)
  );
}
