/** Roles, from the least to the most. */
export type Role = "none" | "reader" | "operator";

/** A person who has signed in. */
export interface Session {
  /** Name in the audit log. Not a secret. */
  readonly name: string;
  readonly role: Exclude<Role, "none">;
  /** The owner of the credential. Where acting is off, an operator's session is a reader, too. */
  readonly holder: "operator" | "reader";
  readonly signedInBy: "link" | "key";
  readonly createdAtMs: number;
  /** Last request that a person caused. */
  seenAtMs: number;
  /** Wrong answers to a confirmation, since the last right one. */
  wrongConfirmations: number;
  /** Refunds since the last confirmation, in millionths of a token. */
  refundedMicros: bigint;
}
