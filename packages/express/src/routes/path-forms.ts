import type { Request } from "express";

/**
 * Returns whether Express reads a request target as it is written: a path, or an absolute URL with
 * a path, in plain characters. For any other target it falls back on a parser that rewrites the
 * path, or adds one. Mounted routers go on cutting the original. A router may then match a path
 * that the whole request never showed. No client sends such targets: RFC 9112, section 3.2. A path
 * that others read in another way has a bounded length. It has few runs of slashes and segments of
 * two dots. Each run doubles the forms to match. Three such segments make up to 10 mounts.
 * Wildcards of Express 4 take quadratic time. An absolute URL has none of either: behind a mount,
 * its path is read three times.
 */
export function isPlainTarget(target: string): boolean {
  if (!plainPath.test(target) && !plainUrl.test(target) && target !== "*") return false;
  const path = pathOf(target);
  if (!fetchedUnlike.test(path)) return true;
  if (path.length > maxLength.plain) return false;
  if ([path, decode(path)].some((each) => hasOddHost(each) || hasOddHost(fetchedPath(each)))) {
    return false;
  }
  const climbCount = climbsOf(target);
  const count = (each: string, signs: RegExp) => each.match(signs)?.length ?? 0;
  const runCount = count(path, runs);
  const hostCount = count(path, hosts);
  // Each may have many where the others have one: `//%2F//`, and `//\//` without hosts.
  const further = [decodeAround(path), decode(path)].map((each) => count(each, hosts));
  const most = Math.max(runCount, hostCount, ...further);
  const isAbsolute = !target.startsWith("/");
  if (climbCount > maxClimbs || climbCount + most > (isAbsolute ? 0 : maxRuns)) return false;
  if (climbCount > 0) return path.length <= maxLength.withClimbs;
  return hostCount === 0 || path.length <= maxLength.withRuns;
}

/** Returns whether parsers that read `//user@host` as a host differ about its end. */
function hasOddHost(path: string): boolean {
  return (path.match(hosts) ?? []).some((host) => host.includes("@") && !plainUser.test(host));
}

/** Returns whether a target's path has segments of dots, also once it is decoded. */
export function hasDotSegments(target: string): boolean {
  const segments = segmentsOf(decode(pathOf(target)));
  return segments.some((segment) => climbing.test(segment) || still.test(segment));
}

function climbsOf(target: string): number {
  return segmentsOf(decode(pathOf(target))).filter((segment) => climbing.test(segment)).length;
}

/** A segment that leads a folder up; also escaped, since it may be decoded later. */
const climbing = /^(?:\.|%2e){2}$/i;
/** A segment that leads nowhere. */
const still = /^(?:\.|%2e)$/i;
/** Parts that the URL standard drops, of a segment or from its end. */
const dropped = /(?<![\0- ])[\0- ]+$|[\t\n\r]|[?#].*/gs;

/** Signs that the URL standard reads in its own way, plain or decoded. */
const fetchedUnlike = /\/[./]|\\|%(?:0[9ad]|2[35ef]|3f|5c)|%(?:[01].|20)$/i;
const slash = /[/\\]/;
/** Of a decoded path, what the URL standard leaves out or cuts. */
const leftOut = /[\t\n\r?#]|[\0- ]$/;
const escapedSlashes = /%2f/gi;
const runs = /\/{2,}/g;
/** Runs of slashes as the URL standard reads them, each with the host that may follow. */
const hosts = /[/\\](?:[\t\n\r]*[/\\])+[^/\\?#]*/g;
/** A user with a host that all parsers end at the next slash. `url.parse` may end it before. */
const plainUser = /@[\w.-]{0,62}(?::\d{0,5})?$/;
/** 32 forms. */
const maxRuns = 5;
const maxClimbs = 3;
const maxLength = { plain: 4_000, withRuns: 1_000, withClimbs: 500 };

const plainPath = /^\/[^#\s]*$/;
/** The host is bounded, since a path that is misread holds it. */
const plainUrl =
  /^https?:\/\/(?:[\w.-]{1,255}|\[[\da-f:.]{2,45}\])(?::\d{0,5})?\/[\w.~!$&()*+,;=:@%/?[\]-]*$/i;
const unusual = /[^\w\-.~!$&'()+,;=@/]|\/\/|\/\./;

/** The targets of a request: as sent, relative to the middleware's mount, and with the mount. */
export function targetsOf({ url, baseUrl, originalUrl }: Request): string[] {
  const targets = [url];
  if (originalUrl !== url) targets.push(originalUrl);
  const full = baseUrl + url;
  if (full !== url && full !== originalUrl) targets.push(full);
  return targets;
}

/**
 * The path of an absolute URL as Express 5 misreads it, once mounts have taken all of its path. An
 * optional mount cuts a slash from the rest, `http://host`. The router behind it reads
 * `/ttp://host`. `undefined` for a target that is a path.
 */
export function cutTargetOf(target: string): string | undefined {
  const path = pathOf(target);
  if (target.startsWith("/") || path === target) return undefined;
  const rest = target.split(/[?#]/, 1)[0]?.slice(1, -path.length) ?? "";
  return `${path.replace(/\/$/, "")}/${rest}`;
}

/**
 * The spellings of a target as Express's routers read it. Mounted ones read single slashes in place
 * of any of its runs. A client may escape any sign, and escaped slashes are parts of parameters.
 */
export function expressForms(target: string): string[] {
  const path = pathOf(target);
  if (!unusual.test(path)) return [target];
  return [...new Set([target, ...singleSlashForms(path), ...respelled(path)])];
}

/**
 * Further readings of a target, each with its spellings: decoded and normalised, as by servers of
 * files and proxies, or by a handler's `fetch`.
 */
export function servedReadings(target: string): string[][] {
  const path = pathOf(target);
  if (!unusual.test(path)) return [];
  const readings = distinct([...normalReadings([path]), ...fetchedReadings(path)]);
  return distinct(readings.map(readable));
}

/**
 * The reading of a target by the `fetch` of a handler that puts decoded parameters into its path.
 * Slashes stay escaped here.
 */
export function truncatedReadings(target: string): string[][] {
  const path = pathOf(target);
  if (!fetchedUnlike.test(path) || !path.startsWith("/")) return [];
  // Further slashes may stand in a row here, and each run would double the forms.
  return withoutHosts(decodeAround(path)).map((each) => {
    const pathname = fetchedPath(each);
    return readable([pathname, ...respelled(pathname)]);
  });
}

/** Decoded but for its escaped slashes. */
function decodeAround(path: string): string {
  const parts = path.split(/(%2f|%5c)/i);
  return parts.map((part, at) => (at % 2 === 0 ? decode(part) : part)).join("");
}

/**
 * A path, and what is left of it where a parser reads `//host/path`, as `new URL(path, base)` does.
 * It may see the path from any of its runs of slashes on, behind a mount. Node's `url.parse` takes
 * `//user@host` for a host in any case. A server behind a proxy may take the next one.
 */
function withoutHosts(path: string): string[] {
  const rests = [...path.matchAll(hosts)].map(({ 0: { length }, index }) => {
    const rest = path.slice(index + length);
    return path.slice(0, index) + (slash.test(rest.charAt(0)) ? rest : `/${rest}`);
  });
  return [path, ...rests];
}

/**
 * The spellings that a router reads as they are. It trims white space, and refuses what it cannot
 * decode. An encoded spelling stands beside each of these.
 */
function readable(forms: string[]): string[] {
  return forms.filter((form) => !/[%\s]/.test(form.replace(decodable, "")));
}

/**
 * The path of a key in the encoded normal form. Clients need not escape characters that the key
 * escapes without need. An escaped slash stays escaped.
 */
export function normalKeyPath(path: string): string {
  return path
    .replace(/(?:%(?!2f)[0-9a-f]{2}|%(?![0-9a-f]{2})|[^!-~])+/gi, (run) =>
      encode(decode(run)).replace(/[!$()+]/g, "\\$&"),
    )
    .replace(escapedSlashes, "%2F");
}

/**
 * The path with single slashes in place of each choice of its runs of them, but none. Mounts cut
 * slashes from its beginning. A wildcard takes them, in the path of a mount or of a route.
 */
function singleSlashForms(path: string): string[] {
  // Odd parts are runs.
  const forms = path
    .split(/(\/{2,})/)
    .reduce(
      (starts, part, at) =>
        at % 2 === 0
          ? starts.map((start) => start + part)
          : starts.flatMap((start) => [`${start}/`, start + part]),
      [""],
    );
  return forms.slice(0, -1);
}

/**
 * Decoded and encoded again but for escaped slashes. With all slashes, and with single ones.
 */
function respelled(path: string): string[] {
  const parts = path.split(escapedSlashes).map((part) => encode(decode(part)));
  const form = parts.join("%2F");
  return [form, withSingleSlashes(form)];
}

/** A path with single slashes in place of all of its runs of them. */
export function withSingleSlashes(path: string): string {
  return path.replace(runs, "/");
}

/** A request target without its query, and without scheme and host if it has them. */
export function pathOf(target: string): string {
  const path = target.split(/[?#]/, 1)[0] ?? "";
  return path.startsWith("/") ? path : path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, "");
}

/**
 * Paths decoded once, with single slashes and no dot segments. A backslash is a slash to some
 * servers, and to a file system of Unix a character of a name. A handler may fetch such a path, of
 * which the URL standard leaves a part out.
 */
function normalReadings(paths: Iterable<string>): string[][] {
  const decoded = [...new Set([...paths].map(decode))];
  const spellings = new Set(decoded.flatMap((each) => [each.replaceAll("\\", "/"), each]));
  return [...spellings].flatMap((each) => {
    const normal = normalise(each);
    const forms = formsOf(normal);
    // The URL standard ends these in a slash, and Node's `path` does not.
    const isFolder = /\/\.{1,2}$/.test(each) && normal !== "/";
    return [
      forms,
      ...(isFolder ? [forms.map((form) => form.slice(0, -1))] : []),
      ...(leftOut.test(normal) ? [formsOf(normalise(decode(fetchedPath(normal))))] : []),
    ];
  });
}

/**
 * The paths that a server gets from a `fetch` of the handler's, which may have decoded the path
 * before. The URL standard counts the empty segments of a run, and decodes no slash, before it
 * resolves dot segments: `/a//../b` is `/a/b`. It drops tabs, and ends a decoded path at a question
 * mark.
 */
function fetchedReadings(path: string): string[][] {
  if (!fetchedUnlike.test(path) || !path.startsWith("/")) return [];
  const paths = [...withoutHosts(path).flatMap(withoutHosts), ...withoutHosts(decode(path))];
  const splits = [...new Set(paths)].flatMap(splitsOf);
  const readings = distinct(
    splits.flatMap(({ mount, rest }) => {
      const fetched = fetchedPath(rest);
      // The server that is asked may read a host, too. Those of the path itself are left out above.
      const all = fetched === rest ? [fetched] : withoutHosts(fetched);
      const forms = [...all.map((each) => [each]), formsOf(normalise(rest))];
      return forms.map((each) => each.map((form) => mount + form));
    }),
  );
  const forms = new Set(readings.flat());
  const spelled = readings.map((each) => [...each, ...respelled(each[0] ?? "")]);
  return [...spelled, ...normalReadings(forms)];
}

/** The path that a server gets from a `fetch` of this one. */
function fetchedPath(path: string): string {
  return new URL(`http://host${path}`).pathname;
}

/** The readings without those whose forms are the same. */
function distinct(readings: string[][]): string[][] {
  return [...new Map(readings.map((forms) => [forms.join(" "), forms])).values()];
}

/**
 * A path without a mount, and with those above which its dot segments climb. They end at the mount
 * of the handler that resolves them: behind `/api`, `/api/../b` is `/b`, and so `/api/b` here.
 */
function splitsOf(path: string): { mount: string; rest: string }[] {
  const parts = path.split(slash);
  const segments = segmentsOf(path);
  const climbs = segments.flatMap((segment, at) => (climbing.test(segment) ? [at] : []));
  const moving = segments.flatMap((segment, at) => (still.test(segment) ? [] : [at]));
  const ends = climbs.flatMap((at) =>
    climbs.map((_, back) => Math.max(moving[moving.indexOf(at) - back] ?? 1, 1)),
  );
  return [...new Set([1, ...ends])].map((end) => ({
    mount: parts.slice(0, end).join("/"),
    rest: `/${parts.slice(end).join("/")}`,
  }));
}

/** The segments of a path as the URL standard reads them. */
function segmentsOf(path: string): string[] {
  return path.split(slash).map((part) => part.replace(dropped, ""));
}

/** A decoded path with single slashes and no dot segments. */
function normalise(decoded: string): string {
  const segments: string[] = [];
  for (const segment of decoded.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}${/\/\.{0,2}$/.test(decoded) && segments.length > 0 ? "/" : ""}`;
}

/** A decoded path plainly, and encoded again. */
function formsOf(plain: string): string[] {
  return [plain.replaceAll("?", "%3F").replaceAll("#", "%23"), encode(plain)];
}

/** Escaped characters beyond ASCII, as `decodeURIComponent` reads them: RFC 3629, section 4. */
const beyondAscii =
  "(?:%c[2-9a-f]~|%d.~|%e0%[ab].~|%e[1-9a-cef]~~|%ed%[89].~|%f0%[9ab].~~|%f[1-3]~~~|%f4%8.~~)+";
const decodable = new RegExp(
  `(?:%[0-7].)+|(?<!%[89a-f].)${beyondAscii}(?!%[89a-f].)`
    .replaceAll("~", "%[89ab].")
    .replaceAll(".", "[\\da-f]"),
  "gi",
);

/**
 * Escapes of ASCII count beside bytes that are no UTF-8, as servers in other languages read them.
 * Found without exceptions: each takes up to 100 us, and 16 KB may hold 4,000 such bytes.
 */
function decode(path: string): string {
  return path.replace(decodable, (run) => decodeURIComponent(run));
}

/**
 * Escapes characters that a client may not write plainly, and special characters in a key of either
 * Express.
 */
function encode(path: string): string {
  // A callback for each byte takes ten times as long.
  return encodeURI(path.replace(/\p{Surrogate}/gu, "\ufffd"))
    .replaceAll("?", "%3F")
    .replaceAll(":", "%3A")
    .replaceAll("#", "%23")
    .replaceAll("*", "%2A");
}
