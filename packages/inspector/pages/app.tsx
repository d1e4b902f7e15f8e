import { formatCount } from "@coinslot/pages/format";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CycleSummary } from "../src/cycles/summarise.ts";
import type { CycleDetails, InspectorFacts } from "../src/page/page-server.ts";
import { ApiError, openRecording, readCycle, readFacts } from "./client.ts";
import { Copy } from "./copy.tsx";
import { CycleList } from "./cycle-list.tsx";
import { CycleView } from "./cycle-view.tsx";
import { Empty } from "./empty.tsx";
import { useCycles } from "./use-cycles.ts";

/** A recording that was opened on the page. */
interface Opened {
  name: string;
  cycles: CycleDetails[];
}

export function App() {
  const live = useCycles();
  const [facts, setFacts] = useState<InspectorFacts>();
  const [opened, setOpened] = useState<Opened>();
  const [chosen, setChosen] = useState<number>();
  const [details, setDetails] = useState<CycleDetails>();
  const [problem, setProblem] = useState<string>();
  const [filter, setFilter] = useState("");
  const search = useRef<HTMLInputElement>(null);

  const report = (error: unknown) =>
    setProblem(error instanceof ApiError ? error.message : "The page failed. Load it again.");

  useEffect(() => void readFacts().then(setFacts, report), []);
  useEffect(() => {
    const focusSearch = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement;
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener("keydown", focusSearch);
    return () => removeEventListener("keydown", focusSearch);
  }, []);

  const summaries = opened?.cycles.map(({ summary }) => summary) ?? live.cycles;
  const current = summaries?.find(({ id }) => id === chosen);
  // The details follow what the list tells of their cycle.
  const version = JSON.stringify(current);
  useEffect(() => {
    if (chosen === undefined) return setDetails(undefined);
    const fromFile = opened?.cycles.find(({ summary }) => summary.id === chosen);
    if (fromFile !== undefined) return setDetails(fromFile);
    let isLate = false;
    readCycle(chosen).then((read) => isLate || setDetails(read), report);
    return () => {
      isLate = true;
    };
  }, [chosen, opened, version]);

  const open = async (file: File | undefined) => {
    if (file === undefined) return;
    setProblem(undefined);
    try {
      const { cycles } = await openRecording(await file.text());
      setOpened({ name: file.name, cycles });
      setChosen(cycles[0]?.summary.id);
    } catch (error) {
      report(error);
    }
  };
  const close = () => {
    setOpened(undefined);
    setChosen(undefined);
  };

  const shown = summaries?.filter((summary) => matches(summary, filter));
  return (
    <>
      <header class="top">
        <h1>Inspector</h1>
        {facts && (
          <p class="route">
            Buyers ask <Copy text={facts.proxyUrl} label="Address of the proxy" />
            <span class="soft"> for {facts.seller}</span>
          </p>
        )}
        <div class="tools">
          <input
            ref={search}
            type="search"
            aria-label="Filter by path, state, wire or payer"
            placeholder="Filter  /"
            value={filter}
            onInput={({ currentTarget }) => setFilter(currentTarget.value)}
          />
          <a class="button" href="/api/recording" download="coinslot-recording.json">
            Save recording
          </a>
          <label class="button">
            Open recording
            <input
              class="aside"
              type="file"
              accept="application/json,.json"
              onChange={({ currentTarget }) => {
                void open(currentTarget.files?.[0]);
                currentTarget.value = "";
              }}
            />
          </label>
        </div>
      </header>
      {problem && (
        <p class="banner bad" role="alert">
          {problem}{" "}
          <button type="button" onClick={() => setProblem(undefined)}>
            Dismiss
          </button>
        </p>
      )}
      {opened && (
        <p class="banner">
          These {formatCount(opened.cycles.length)} cycles are from {opened.name}.{" "}
          <button type="button" onClick={close}>
            Back to live
          </button>
        </p>
      )}
      {live.lostAt !== undefined && !opened && (
        <p class="banner warn" role="status">
          The inspector does not answer: the list may be old. It connects again by itself.
        </p>
      )}
      <main>
        <section class="list" aria-label="Cycles">
          {shown === undefined ? (
            <ul class="skeleton" aria-busy="true" aria-label="Loading" />
          ) : shown.length === 0 ? (
            <Empty facts={facts} passed={live.passed} isFiltered={filter !== ""} />
          ) : (
            <CycleList cycles={shown} chosen={chosen} onChoose={setChosen} />
          )}
          {!opened && (
            <p class="soft counts">
              {formatCount(live.passed)} other requests passed
              {live.dropped > 0 && `, ${formatCount(live.dropped)} older cycles are no longer kept`}
              .
            </p>
          )}
        </section>
        <section class="details" aria-label="Details" aria-live="polite">
          {details === undefined ? (
            <p class="soft hint">Choose a cycle to see its messages.</p>
          ) : (
            <CycleView details={details} canReplay={facts?.canReplay === true} />
          )}
        </section>
      </main>
    </>
  );
}

function matches({ method, target, state, wire, payer }: CycleSummary, filter: string) {
  const text = `${method} ${target} ${state} ${wire ?? ""} ${payer ?? ""}`.toLowerCase();
  return text.includes(filter.trim().toLowerCase());
}
