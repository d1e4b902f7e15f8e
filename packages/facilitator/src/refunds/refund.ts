import type { Address, Hex } from "@coinslot/protocol";
import type { CreateRefund, Refund, RefundFilter, RefundPage } from "../ledger/refunds/refund.ts";
import type { SignedRefunds, UnsignedRefunds } from "./refund-file.ts";

/** A choice of refunds to sign elsewhere. */
export interface ExportRefunds {
  /** The account that will sign. Default: the configured one. */
  float?: Address | undefined;
  /** Refunds by their ids. Default: all that wait for a signature, 1,000 at most. */
  ids?: readonly string[] | undefined;
  /** Time in which the signatures can be used. Default one day, at most 30. */
  validForSeconds?: number | undefined;
}

/**
 * Result of an import: the refunds that are under way, and those that are not, each with a reason.
 */
export interface ImportedRefunds {
  sent: Refund[];
  refused: { id: string; message: string }[];
}

/** Refunds of a facilitator. Every method throws a `RefundError` for reasons of its caller. */
export interface Refunds {
  /**
   * Begins a refund. From then on the payment serves no request, and its kept answer is gone. The
   * money moves once the payment is final.
   */
  create(request: CreateRefund): Promise<Refund>;
  /** The newest first, page by page. */
  list(filter?: RefundFilter): Promise<RefundPage>;
  get(id: string): Promise<Refund | undefined>;
  /** Lets a refund in `review` or `blocked` go on, to the same address. */
  approve(id: string): Promise<Refund>;
  /**
   * Takes your own transaction as a refund that is `manual`, once a block holds it: it must move
   * the exact amount of the token to the payer.
   */
  markPaid(request: { id: string; transactionHash: Hex }): Promise<Refund>;
  /** Ends a refund that is not signed: no money moves. Its payment still serves no request. */
  cancel(id: string): Promise<Refund>;
  /**
   * The refunds that wait for a signature (`unsigned`), for `signRefunds` on another machine. From
   * then on no other account signs them until `validForSeconds` are over.
   */
  exportUnsigned(request?: ExportRefunds): Promise<UnsignedRefunds>;
  /** Sends refunds that were signed elsewhere. Harmless when repeated. */
  importSigned(signed: SignedRefunds): Promise<ImportedRefunds>;
}
