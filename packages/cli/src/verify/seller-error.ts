/** No whole answer of the seller came: a finding, and no fault of this command. */
export class SellerError extends Error {
  override readonly name = "SellerError";
}

/** The reason for which a check is not made. */
export class NotCheckedError extends Error {
  override readonly name = "NotCheckedError";
}
