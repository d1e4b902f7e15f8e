import fc from "fast-check";

export interface BookEvent {
  kind: string;
  pick: number;
  value: bigint;
}

/** Histories of payers who share one ledger, and the events that meet all of them. */
export interface BookWorld {
  histories: readonly (readonly BookEvent[])[];
  /** Each with the number of events of every history that come before it. */
  shared: readonly { at: number; event: BookEvent }[];
}

/** The way to a loss: few random histories would go it. */
const wayToLoss = ["confirm some", "finalise", "undo deeply", "lose some"];

function expand(event: BookEvent): BookEvent[] {
  return event.kind === "lose deeply" ? wayToLoss.map((kind) => ({ ...event, kind })) : [event];
}

/** An event. `pick` chooses the payment, or the block. */
const eventOf = (kinds: readonly string[]) =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    pick: fc.nat(20),
    value: fc.oneof(fc.bigInt(1n, 1_000n), fc.constant(2n ** 255n)),
  });

const ofPayments = [
  ...["queue", "queue", "refund", "again", "release", "submit", "submit", "fail", "close", "crash"],
  ...["confirm", "confirm", "confirm twice", "confirm all", "confirm all", "lose"],
  ...["adopt", "adopted", "adopted"],
];

const ofChain = [
  ...["settle", "race", "undo", "undo by the previous release", "undo transactions", "finalise"],
  ...["undo deeply", "lose deeply", "lose deeply"],
];

const ofLedger = [
  ...["archive", "wait", "retire", "forget by the previous release"],
  ...["close the books", "begin", "post earlier"],
];

const maxEvents = 36;

const history = fc.array(eventOf(ofPayments), { minLength: 3, maxLength: maxEvents, size: "max" });
const shared = fc
  .array(fc.record({ at: fc.nat(maxEvents), event: eventOf([...ofChain, ...ofLedger]) }), {
    minLength: 2,
    maxLength: 26,
    size: "max",
  })
  .map((list) =>
    list.flatMap(({ at, event }) => expand(event).map((each) => ({ at, event: each }))),
  );

/** @param count histories in each world; a failure shrinks to fewer, and to fewer events */
export const bookWorlds = (count: number): fc.Arbitrary<BookWorld> =>
  // Bias would make half of the histories short.
  fc.noBias(
    fc.record({
      histories: fc.array(history, { minLength: 1, maxLength: count, size: "max" }),
      shared,
    }),
  );
