import { decodedBelow, removed } from "../decode/header-value.ts";
import type { Cycle } from "./cycle.ts";

/** The first request of a cycle, as commands for a shell. */
export interface Commands {
  curl: string;
  pay: string;
}

/** Headers that a client writes by itself. */
const own = new Set(["host", "connection", "content-length", "transfer-encoding", "keep-alive"]);
/** Both programs take a header that begins with @ for the name of a file. */
const headerForm = /^[\w!#$%&'*+.^`|~-]+$/;
const unsafeText = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/**
 * Writes the first request of a cycle as commands. Each text is quoted whole. Parts
 * that the cycle does not hold are left out: secrets, payments, and bodies that are cut or no plain
 * text.
 */
export function writeCommands({ legs, method }: Cycle, origin: string): Commands {
  const [first] = legs;
  const target = first?.request.target ?? "/";
  // Another beginning would name another host.
  const url = quote(`${origin}${target.startsWith("/") ? target : "/"}`);
  const headers = (first?.request.headers ?? []).filter(([name, value]) => {
    const isLeftOut = value.includes(removed) || value.includes(decodedBelow);
    if (isLeftOut || own.has(name.toLowerCase())) return false;
    return headerForm.test(name) && !unsafeText.test(value);
  });
  const { text = "", isWhole = true } = first?.request.body ?? {};
  const isPlain = !unsafeText.test(text.replace(/[\n\t]/g, ""));
  const body = isWhole && isPlain ? text : "";
  const verb = method === "GET" ? "" : ` -X ${quote(method)}`;
  const rest = headers.map(([name, value]) => ` -H ${quote(`${name}: ${value}`)}`).join("");
  // coinslot pay sends a header as a secret to the seller alone: only what the request needs.
  const few = headers.filter(([name]) => /^(?:accept|content-type)$/i.test(name));
  const fewHeaders = few.map(([name, value]) => ` -H ${quote(`${name}: ${value}`)}`).join("");
  const data = (option: string) => (body === "" ? "" : ` ${option} ${quote(body)}`);
  const isFile = body.startsWith("@");
  return {
    curl: `curl -i${verb} ${url}${rest}${data("--data-raw")}`,
    pay: `coinslot pay ${url}${verb}${fewHeaders}${isFile ? "" : data("-d")}`,
  };
}

/** One word of a POSIX shell, whatever it holds. */
function quote(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}]/gu, (character) =>
    "\n\t".includes(character) ? character : "",
  );
  return `'${plain.replaceAll("'", `'\\''`)}'`;
}
