import { useEffect } from "preact/hooks";
import { ApiError } from "./api/api-error.ts";
import { listenToEvents } from "./api/events.ts";
import { openSession, readSession, type SessionState, session } from "./api/session.ts";
import { useStore } from "./api/store.ts";
import { Frame } from "./frame.tsx";
import { Fault, Skeleton } from "./parts/states.tsx";
import { usePlace } from "./router.tsx";
import { SignIn } from "./views/sign-in.tsx";
import { viewOf } from "./views.tsx";

/** The console: its sign-in page, or the page of the address within the frame. */
export function App() {
  const state = useStore(session);
  useEffect(() => void openSession(), []);
  if (state === undefined) {
    return (
      <main class="sign-in">
        <Skeleton lines={3} />
      </main>
    );
  }
  if (state instanceof ApiError) {
    return (
      <main class="sign-in">
        <h1>Console</h1>
        <Fault error={state} retry={() => void readSession()} />
      </main>
    );
  }
  return state.role === "none" ? <SignIn state={state} /> : <SignedIn state={state} />;
}

function SignedIn({ state }: { state: SessionState }) {
  const place = usePlace();
  useEffect(listenToEvents, []);
  const view = viewOf(place);
  return (
    <Frame state={state} section={view.path}>
      {view.render()}
    </Frame>
  );
}
