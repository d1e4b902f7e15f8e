/** Figures of a process's work on paid requests. */
export interface LoadFigures {
  /** Paid requests that it works on. */
  places: number;
  /** Paid requests that wait for others of their payer. */
  waiting: number;
  /** Bytes of their bodies, and of the answers that are held for them. */
  heldBytes: number;
  /** Requests refused because of these, since the start. */
  refusals: number;
}

/** Work of a process on paid requests. */
export interface Load extends LoadFigures {
  /** The last report of refusals: its time, and their number then. */
  reported: { at: number; refusals: number };
  /** Payments that are being verified in a place, by client. */
  unverified: Map<string, number>;
}

/** Bounds of the load. */
export interface LoadLimits {
  maxPaidRequests: number;
  maxHeldBytes: number;
}

/** A paid request's part of the load. */
export interface Place {
  /**
   * `spare`: only a payment under way may go on in it. `waiting`: for others of its payer. `none`:
   * the request waits for its body, or has its outcome.
   */
  kind: "none" | "full" | "spare" | "waiting";
  heldBytes: number;
}

/**
 * The default limits. By Little's law, requests in flight = rate × time. One core sells about 1,000
 * a second, and a chain with blocks of a second settles in one. More would only wait longer.
 */
export const defaultLimits: LoadLimits = { maxPaidRequests: 1_000, maxHeldBytes: 256 * 2 ** 20 };

/** The load of this process: its gates and facilitator routers share processor and memory. */
export const processLoad: Load = createLoad();

/** No work yet. */
export function createLoad(): Load {
  const reported = { at: Number.NEGATIVE_INFINITY, refusals: 0 };
  return { places: 0, waiting: 0, heldBytes: 0, refusals: 0, reported, unverified: new Map() };
}

/** Reads the load of this process, for metrics. */
export function readLoad(): LoadFigures {
  const { places, waiting, heldBytes, refusals } = processLoad;
  return { places, waiting, heldBytes, refusals };
}

/** Share of the limits that is kept for payments under way. */
const spareShare = 1 / 64;

/** Share of the limits that is kept for payments which a facilitator has verified. */
export const verifiedShare = 1 / 2;

/**
 * Share of the places that unverified payments of one client may have. A wallet costs nothing, and
 * a caller of many would keep all others out.
 */
const clientShare = 1 / 2;

/** A request without a place. */
export function createPlace(): Place {
  return { kind: "none", heldBytes: 0 };
}

/**
 * Takes a place, a spare one where all others are taken. One that has a place keeps it.
 *
 * @returns whether it has one
 */
export function takePlace(
  load: Load,
  place: Place,
  limits: LoadLimits,
  spare: number = spareShare,
): boolean {
  if (place.kind === "full" || place.kind === "spare") return true;
  leavePlace(load, place);
  const { maxPaidRequests, maxHeldBytes } = limits;
  const spareCount = Math.ceil(maxPaidRequests * spare);
  if (load.places < maxPaidRequests && load.heldBytes < maxHeldBytes) place.kind = "full";
  else if (
    load.places < maxPaidRequests + spareCount &&
    load.heldBytes < maxHeldBytes * (1 + spare)
  ) {
    place.kind = "spare";
  } else return false;
  load.places += 1;
  return true;
}

/**
 * Takes a place for a new payment.
 *
 * @returns whether it has one that is not spare; it keeps none else
 */
export function takeNewPlace(load: Load, place: Place, limits: LoadLimits): boolean {
  // A spare one becomes a full one where others have left meanwhile.
  if (place.kind === "spare") leavePlace(load, place);
  if (!takePlace(load, place, limits)) return false;
  if (place.kind === "full") return true;
  leavePlace(load, place);
  return false;
}

/**
 * Counts a verification for its client, until `endVerification`.
 *
 * @returns whether the client has room for it; it is not counted else
 */
export function beginVerification(load: Load, client: string, limits: LoadLimits): boolean {
  const count = load.unverified.get(client) ?? 0;
  if (count >= Math.ceil(limits.maxPaidRequests * clientShare)) return false;
  load.unverified.set(client, count + 1);
  return true;
}

/** Counts a verification no more. */
export function endVerification({ unverified }: Load, client: string): void {
  const count = unverified.get(client) ?? 0;
  if (count > 1) unverified.set(client, count - 1);
  else unverified.delete(client);
}

/** Gives the place up. */
export function leavePlace(load: Load, place: Place): void {
  if (place.kind === "none") return;
  if (place.kind === "waiting") load.waiting -= 1;
  else load.places -= 1;
  place.kind = "none";
}

/** Gives the place up while the request waits for others of its payer. */
export function waitForPayer(load: Load, place: Place): void {
  leavePlace(load, place);
  place.kind = "waiting";
  load.waiting += 1;
}

/** Returns whether those that wait may go on: as many as there are places. */
export function hasRoomToWait(load: Load, { maxPaidRequests }: LoadLimits): boolean {
  return load.waiting <= maxPaidRequests;
}

/** Sets the bytes that are held for a request. */
export function holdBytes(load: Load, place: Place, bytes: number): void {
  load.heldBytes += bytes - place.heldBytes;
  place.heldBytes = bytes;
}

/** Gives up the place and all bytes. */
export function endLoad(load: Load, place: Place): void {
  leavePlace(load, place);
  holdBytes(load, place, 0);
}
