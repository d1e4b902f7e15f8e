import type { Hash } from "viem";
import type { TransferProgress } from "./send/transfer-progress.ts";

/**
 * Reason codes of a transfer that was not quoted, sent or seen to arrive. One code for each kind of
 * fault.
 */
export type BridgeErrorCode =
  /** The options of `createBridge` cannot work. */
  | "invalid_configuration"
  /** No chain of that name is in the table or the configuration. */
  | "unknown_target_chain"
  /** The RPC endpoint serves a chain that is not in the table or the configuration. */
  | "unknown_source_chain"
  /** The tokens are there already. */
  | "same_chain"
  /** `token` is no address, or has a wrong checksum. */
  | "invalid_token"
  /**
   * `oftContractAddress` is no address, or no OFT answers there; or it would take more than is to
   * be sent.
   */
  | "invalid_contract"
  /** No contract of the source chain takes this token to this target. */
  | "no_route"
  /** The recipient is no address of the target chain. */
  | "invalid_recipient"
  /** Zero, less than survives rounding, or less than the contract takes. */
  | "amount_too_small"
  /** More than the contract takes at once, or more than a message can carry. */
  | "amount_too_large"
  /** Less than 999 of 1000 would arrive. */
  | "loss_too_large"
  /** The account holds less of the token than is to be sent. */
  | "insufficient_balance"
  /** The account cannot pay for gas and LayerZero's fee. */
  | "insufficient_native_balance"
  /** LayerZero's fee is above `bridgeMaxFee`. */
  | "bridge_fee_above_maximum"
  /**
   * It would now cost more, bring less or go another way than agreed. Quote again, and ask again.
   */
  | "terms_changed"
  /** Gas and LayerZero's fee together are above `maxTotalFee`. */
  | "total_fee_above_maximum"
  /** The account can be asked, but does not sign. */
  | "read_only_account"
  /** The account did not sign. */
  | "signing_failed"
  /** The contracts refuse this transfer; the message has their words. */
  | "refused_by_contract"
  /** Every node refused the signed approval. No token has moved. */
  | "rejected_by_node"
  /** The approval was mined, and reverted. No token has moved. */
  | "approval_reverted"
  /**
   * The approval was sent, and not mined in time. No token has moved: the same transfer can be run
   * again.
   */
  | "approval_not_mined"
  /**
   * By nodes of two hosts, the transfer was mined, and reverted. No token has moved; its gas is
   * paid.
   */
  | "send_reverted"
  /**
   * The transaction `hash` was signed and may have been sent. Its fate is unknown, or reported by
   * one host alone. Or the nodes refused it, and one may have kept it.
   */
  | "outcome_unclear"
  /**
   * By nodes of two hosts, another transaction has taken the transfer's nonce. It has moved no
   * token, and never will.
   */
  | "replaced"
  /** By every node, the transaction to track sends nothing through the contracts of its chain. */
  | "not_a_transfer"
  /** The target chain cannot be watched: it is no EVM chain, or no RPC URL was given for it. */
  | "target_not_watchable"
  /** Not seen to arrive in time. `progress` has the tokens' place. */
  | "delivery_timeout"
  /**
   * The file of a top-up cannot be read or written, or another one has used it meanwhile. The
   * transfer that it should have recorded is not sent.
   */
  | "file_unavailable"
  /** No RPC endpoint answered. */
  | "rpc_unavailable";

/** The one base of all errors of a bridge. No message holds a key or an RPC URL. */
export class BridgeError extends Error {
  override readonly name = "BridgeError";
  readonly code: BridgeErrorCode;
  /** The transaction that the error is about, where there is one. */
  readonly hash: Hash | undefined;
  /** Progress of a transfer, for `delivery_timeout`, `target_not_watchable`. */
  readonly progress: TransferProgress | undefined;

  constructor(
    code: BridgeErrorCode,
    message: string,
    options: {
      cause?: unknown;
      hash?: Hash | undefined;
      progress?: TransferProgress | undefined;
    } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.hash = options.hash;
    this.progress = options.progress;
  }

  /**
   * True if tokens have left the account, or still may: track `hash` before sending again.
   */
  get moneyMayHaveMoved(): boolean {
    return (
      this.code === "outcome_unclear" ||
      this.code === "delivery_timeout" ||
      this.code === "target_not_watchable"
    );
  }
}
