import type { ServerResponse } from "node:http";
import { headerName } from "@coinslot/protocol";

/**
 * Largest head of an answer with challenges, in characters. Clients of Node read 16 KB, and a few
 * headers are yet to come.
 */
const maxHead = 15_000;
/** Length of challenges that fit beside any offer of x402 whose route could start. */
const alwaysFits = 2_000;

/**
 * Writes challenges before those of the application: some clients read the first alone. Those for
 * which the head has no room are left out, the last ones first: a client that cannot read it can
 * buy by no wire.
 */
export function prependChallenges(response: ServerResponse, challenges: readonly string[]): void {
  const others = response.getHeader(headerName.authenticate) ?? [];
  const lines = [
    ...fitting(response, challenges),
    ...(Array.isArray(others) ? others : [String(others)]),
  ];
  const [only] = lines;
  // Node joins a list in order to check its characters.
  response.setHeader(headerName.authenticate, lines.length === 1 && only ? only : lines);
}

/** The first challenges that fit. The other wires have written their headers before. */
function fitting(response: ServerResponse, challenges: readonly string[]): readonly string[] {
  let length = 0;
  for (const challenge of challenges) length += headerLength(challenge);
  if (length <= alwaysFits) return challenges;
  let room = maxHead - headLength(response);
  return challenges.filter((challenge) => {
    room -= headerLength(challenge);
    return room >= 0;
  });
}

/** With its name, and the marks around it. */
function headerLength(challenge: string): number {
  return headerName.authenticate.length + challenge.length + 4;
}

function headLength(response: ServerResponse): number {
  let length = 0;
  for (const name of response.getHeaderNames()) {
    const value = response.getHeader(name) ?? "";
    const lines = Array.isArray(value) ? value : [String(value)];
    for (const line of lines) length += name.length + line.length + 4;
  }
  return length;
}
