import { randomBytes } from "node:crypto";
import { type Answer, isSuccess } from "../ask-seller.ts";
import { failed, judgeRefusals, type RouteCheck } from "../check.ts";
import type { Target } from "../read-target.ts";

/** Whether another spelling of the path reaches the handler without a payment. */
export const spellings: RouteCheck = {
  name: "spellings",
  scope: "route",
  payments: 0,
  needsPayer: false,
  async run({ target, ask }) {
    // A server may answer every path alike, as single-page applications have it.
    const stranger = await ask({ path: `/${randomBytes(12).toString("hex")}` });
    const open: string[] = [];
    const all = spellingsOf(target);
    const statuses: number[] = [];
    for (const [kind, path] of all) {
      const answer = await ask({ path });
      statuses.push(answer.status);
      if (isSuccess(answer) && !isAlike(answer, stranger)) open.push(kind);
    }
    if (open.length > 0) return failed(`served without a payment: ${open.join(", ")}`);
    // Strange paths are errors of some servers, and serve nothing.
    return judgeRefusals(
      `${all.length} spellings are closed`,
      statuses.filter((status) => status < 500),
    );
  },
};

function isAlike(answer: Answer, stranger: Answer): boolean {
  return answer.status === stranger.status && answer.body.equals(stranger.body);
}

/** Spellings that some server, framework or proxy takes for the same path. */
function spellingsOf({ url }: Target): [kind: string, path: string][] {
  const { pathname, search } = url;
  const segments = pathname.split("/");
  const last = segments.at(-1) ?? "";
  const parent = segments.slice(0, -1).join("/");
  const all: [string, string][] = [
    ["a slash at the end", `${pathname}/`],
    ["a doubled slash", `/${pathname}`],
    ["a dot segment", `/.${pathname}`],
    ["a step back", `/x/..${pathname}`],
    ["capitals", pathname.toUpperCase()],
    ["an absolute URL", `${url.origin}${pathname}`],
    ["a fragment", `${pathname}#x`],
    ["an encoded letter", `${parent}/${escapeFirst(last)}`],
    ["an encoded letter in lower case", `${parent}/${escapeFirst(last).toLowerCase()}`],
    ["an encoded slash", `${parent === "" ? "/" : parent}%2f${last}`],
    ["an encoded dot segment", `${parent}/%2e/${last}`],
    ["an empty query", `${pathname}?`],
  ];
  const others = all.filter(([, path]) => path !== pathname);
  return others.map(([kind, path]) => {
    if (path.includes("#")) return [kind, path];
    return [kind, path.endsWith("?") ? path : `${path}${search}`];
  });
}

/** Encodes the first letter: `%77eather`. Letters beyond 9 in hexadecimal show the two cases. */
function escapeFirst(segment: string): string {
  const index = segment.search(/[jklmnoJKLMNOzZ]/);
  const at = index === -1 ? 0 : index;
  const letter = segment[at];
  if (letter === undefined || letter === "%") return segment;
  const code = letter.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
  return `${segment.slice(0, at)}%${code}${segment.slice(at + 1)}`;
}
