import { ApiError } from "./api-error.ts";
import { ask, token } from "./ask.ts";
import { createStore, useStore } from "./store.ts";

export type Role = "none" | "reader" | "operator";

/** The session as the console describes it. */
export interface SessionState {
  role: Role;
  session?: { name?: string; expiresAt: string; isTokenValid: boolean };
  mayAct: boolean;
  signIn: { link: boolean; key: boolean };
  confirmation: "key" | "code";
}

/** `undefined`: not asked yet. */
export const session = createStore<SessionState | ApiError | undefined>(undefined);

/** Reads the session, and signs in by the link of the address bar, if there is one. */
export async function openSession(): Promise<void> {
  const link = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  if (link === undefined) return readSession();
  // The secret leaves the address bar and the history before anything else is done.
  history.replaceState(null, "", location.pathname + location.search);
  await signIn({ link }).catch((error: unknown) => session.set(toApiError(error)));
}

export async function readSession(): Promise<void> {
  try {
    session.set((await ask("session", { method: "GET" })) as SessionState);
  } catch (error) {
    session.set(toApiError(error));
  }
}

/** @throws ApiError */
export async function signIn(credential: { link: string } | { key: string }): Promise<void> {
  const answer = await ask("session", { method: "POST", body: credential });
  const { token: half, ...state } = answer as SessionState & { token: string };
  token.write(half);
  session.set(state);
}

/** Asks for a fresh link where the console runs. @throws ApiError */
export async function requestLink(): Promise<void> {
  await ask("session/link", { method: "POST", body: {} });
}

/** Ends this session, or all of them. */
export async function signOut(which: "session" | "sessions" = "session"): Promise<void> {
  await ask(which, { method: "DELETE" }).catch(() => undefined);
  token.clear();
  await readSession();
}

/** A request was refused without a session: the sign-in page is shown. */
export function noteRefusal(error: ApiError): void {
  if (error.code !== "sign_in_needed") return;
  token.clear();
  void readSession();
}

function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, { message: String(error) });
}

/** Whether the session may run operations that act. */
export function useMayAct(): boolean {
  const state = useStore(session);
  return state !== undefined && !(state instanceof ApiError) && state.role === "operator";
}
