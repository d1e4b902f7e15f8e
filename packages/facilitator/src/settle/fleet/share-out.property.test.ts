import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shareOut } from "./share-out.ts";

const fleet = fc.record({
  relayers: fc.integer({ min: 1, max: 9 }),
  settlers: fc.integer({ min: 1, max: 6 }),
  /** Owner of each relayer at the beginning: a settler, none, or a process of another kind. */
  owners: fc.array(fc.option(fc.nat({ max: 7 }), { nil: undefined }), {
    minLength: 9,
    maxLength: 9,
  }),
  /** The settler that makes the next step, and the greatest age of its view. */
  steps: fc.array(fc.record({ settler: fc.nat({ max: 5 }), isStale: fc.boolean() }), {
    maxLength: 40,
  }),
});

function countOf(owners: ReadonlyMap<string, string>, settler: string): number {
  return [...owners.values()].filter((owner) => owner === settler).length;
}

describe("the share of a process in the relayers", () => {
  it("becomes fair in a few rounds, whatever came before, and then stays as it is", () => {
    void fc.assert(
      fc.property(fleet, (given) => {
        const relayers = Array.from({ length: given.relayers }, (_, index) => `relayer ${index}`);
        const settlers = Array.from({ length: given.settlers }, (_, index) => `settler ${index}`);
        const owners = new Map<string, string>();
        for (const [index, relayer] of relayers.entries()) {
          const owner = given.owners[index];
          if (owner !== undefined) owners.set(relayer, settlers[owner] ?? "an older release");
        }
        let seen = new Map(owners);

        function step(self: string, view: ReadonlyMap<string, string>): boolean {
          const { take, giveBack } = shareOut({ self, relayers, settlers, owners: view });
          const taken = take.filter((relayer) => !owners.has(relayer));
          for (const relayer of taken) owners.set(relayer, self);
          const own = [...owners].filter(([, owner]) => owner === self).slice(0, giveBack);
          for (const [relayer] of own) owners.delete(relayer);
          return taken.length + own.length > 0;
        }

        for (const { settler, isStale } of given.steps) {
          step(settlers[settler % settlers.length] ?? "", isStale ? seen : owners);
          if (!isStale) seen = new Map(owners);
        }
        let rounds = 0;
        while (settlers.map((self) => step(self, new Map(owners))).includes(true)) {
          rounds += 1;
          expect(rounds).toBeLessThanOrEqual(2 * given.relayers + 2);
        }
        const counts = settlers.map((settler) => countOf(owners, settler));
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        expect(owners.size).toBe(relayers.length);
      }),
    );
  });

  it("is everything for a process alone", () => {
    const relayers = ["a", "b", "c"];
    const alone = { self: "one", relayers, settlers: ["one"], owners: new Map() };
    expect(shareOut(alone)).toEqual({ take: relayers, giveBack: 0 });
  });

  it("gives two of four relayers to a second process at once", () => {
    const relayers = ["a", "b", "c", "d"];
    const owners = new Map(relayers.map((relayer) => [relayer, "one"]));
    const settlers = ["one", "two"];
    expect(shareOut({ self: "one", relayers, settlers, owners })).toEqual({
      take: [],
      giveBack: 2,
    });
    expect(shareOut({ self: "two", relayers, settlers, owners })).toEqual({
      take: [],
      giveBack: 0,
    });
  });

  it("leaves a relayer with a process of an older release, and shares the others", () => {
    const relayers = ["a", "b", "c"];
    const owners = new Map([["a", "older"]]);
    const settlers = ["one", "two"];
    expect(shareOut({ self: "one", relayers, settlers, owners })).toEqual({
      take: ["b"],
      giveBack: 0,
    });
    expect(shareOut({ self: "two", relayers, settlers, owners })).toEqual({
      take: ["c"],
      giveBack: 0,
    });
  });
});
