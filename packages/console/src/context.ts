import type { Operation, Operator } from "@coinslot/facilitator";
import type { Confirmations } from "./acts/confirmations.ts";
import type { KeptActs } from "./acts/kept-acts.ts";
import type { RecordSession } from "./audit/record-session.ts";
import type { Admit } from "./connections/bound-connections.ts";
import type { EventStreams } from "./events/event-streams.ts";
import type { ReadPlace } from "./place/read-place.ts";
import type { Sessions } from "./sessions/sessions.ts";
import type { ConsoleSettings } from "./settings.ts";
import type { OneTimeLinks } from "./sign-in/one-time-links.ts";
import type { SignIn } from "./sign-in/sign-in.ts";

/** Parts of a console, for all of its requests. */
export interface ConsoleContext {
  readonly settings: ConsoleSettings;
  /** Whether a session can act here: on a listener of its own, or where its owner allows it. */
  readonly mayAct: boolean;
  /** Of the console's own listener. */
  readonly admit: Admit;
  readonly operator: Operator;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly readPlace: ReadPlace;
  readonly sessions: Sessions;
  readonly links: OneTimeLinks;
  readonly signIn: SignIn;
  readonly recordSession: RecordSession;
  readonly confirmations: Confirmations;
  readonly keptActs: KeptActs;
  readonly events: EventStreams;
}
