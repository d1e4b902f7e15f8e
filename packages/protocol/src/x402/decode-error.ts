/** Faults of a message that cannot be decoded. */
export type DecodeFault =
  | "too_large"
  | "not_base64"
  | "not_utf8"
  | "not_json"
  | "too_deep"
  | "unsafe_content"
  | "wrong_shape";

const words: Record<DecodeFault, string> = {
  too_large: "is larger than the limit",
  not_base64: "is not base64",
  not_utf8: "is not UTF-8",
  not_json: "is not JSON",
  too_deep: "is nested too deeply",
  unsafe_content: "holds a key, a character or a number that is not safe to pass on",
  wrong_shape: "does not have the right shape",
};

/** The one error that decoders throw, for any input. Its message never repeats the input. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
  readonly fault: DecodeFault;
  /** Location of the fault, as a dotted path; empty for faults other than a wrong shape. */
  readonly path: string;

  constructor(noun: string, fault: DecodeFault, path = "") {
    super(`${noun} ${words[fault]}${path === "" ? "" : ` at ${path}`}`);
    this.fault = fault;
    this.path = path;
  }
}
