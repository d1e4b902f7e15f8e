import { type Problem, type ProblemName, paymentProblem } from "@coinslot/protocol";
import { unpaidError } from "../payment-required-answer.ts";

/** Problems by the error of a 402 answer. Any other error is a failed verification. */
const problems = new Map<string, [name: ProblemName, detail: string]>([
  [unpaidError, ["payment-required", "This resource is sold. Pay one of the challenges"]],
  ["invalid_payload", ["malformed-credential", "The credential cannot be read"]],
  ["invalid_challenge", noChallenge()],
  ["No matching payment requirements", noChallenge()],
  ["invalid_network", noChallenge()],
  ["invalid_exact_evm_network_mismatch", noChallenge()],
  ["invalid_exact_evm_recipient_mismatch", noChallenge()],
  [
    "invalid_exact_evm_nonce_already_used",
    ["invalid-challenge", "The challenge has been paid, and its answer was delivered"],
  ],
  [
    "invalid_exact_evm_payload_authorization_valid_before",
    ["payment-expired", "The authorization expires before the payment can be settled"],
  ],
  [
    "invalid_exact_evm_payload_authorization_valid_after",
    ["payment-expired", "The authorization is not valid yet"],
  ],
  [
    "invalid_exact_evm_payload_authorization_value_mismatch",
    ["payment-insufficient", "The authorized amount is not the price"],
  ],
]);

function noChallenge(): [ProblemName, string] {
  return ["invalid-challenge", "The challenge is not one of this resource"];
}

/** The problem that a 402 answer's error means to a buyer of MPP. */
export function problemOf(error: string): Problem {
  const [name, detail] = problems.get(error) ?? [
    "verification-failed",
    "The payment was refused, and nothing was charged",
  ];
  return paymentProblem(name, detail);
}
