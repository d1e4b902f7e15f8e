import type { Clock } from "@coinslot/chain";
import type { IndexerLogger } from "../logger.ts";

/** Speed of reading history, and the time left. */
export interface Pace {
  transfersPerSecond: number;
  /** Undefined until it can be estimated. */
  secondsLeft: number | undefined;
}

export interface Progress {
  /** History begins, with this number of blocks to read. */
  begin(blocks: number): void;
  advance(step: { blocks: number; transfers: number }): void;
  end(): void;
  /** Undefined while there is nothing to do. */
  pace(): Pace | undefined;
}

/** A terminal, as far as a bar needs one. */
export interface ProgressTerminal {
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  write(text: string): unknown;
}

const logEveryMs = 5_000;
const drawEveryMs = 200;

/**
 * Reports the progress of a chain's history: a bar on a terminal, a line at intervals elsewhere.
 */
export function createProgress(options: {
  chain: string;
  logger: Pick<IndexerLogger, "info">;
  clock: Pick<Clock, "now">;
  terminal?: ProgressTerminal | undefined;
}): Progress {
  const { chain, logger, clock, terminal } = options;
  const isBar = terminal?.isTTY === true;
  let run:
    | { startedAt: number; toldAt: number; total: number; blocks: number; transfers: number }
    | undefined;

  function pace(): Pace | undefined {
    if (run === undefined) return undefined;
    const seconds = Math.max((clock.now() - run.startedAt) / 1000, 1e-3);
    const secondsLeft =
      run.blocks === 0 ? undefined : (seconds / run.blocks) * Math.max(0, run.total - run.blocks);
    return { transfersPerSecond: run.transfers / seconds, secondsLeft };
  }

  function tell(isOver: boolean) {
    const current = pace();
    if (run === undefined || current === undefined) return;
    run.toldAt = clock.now();
    const { total, blocks, transfers } = run;
    const share = total === 0 ? 1 : Math.min(1, blocks / total);
    const perSecond = Math.round(current.transfersPerSecond);
    if (isBar) {
      const text = drawBar({ chain, share, perSecond, left: current.secondsLeft });
      terminal?.write(`\r${text}\x1b[K${isOver ? "\n" : ""}`);
      return;
    }
    const details = { chain, blocks, ofBlocks: total, transfers, perSecond };
    const secondsLeft = current.secondsLeft && Math.round(current.secondsLeft);
    logger.info({ ...details, secondsLeft }, isOver ? "History is read" : "Reading history");
  }

  return {
    begin(total) {
      const now = clock.now();
      run = { startedAt: now, toldAt: now, total, blocks: 0, transfers: 0 };
    },
    advance({ blocks, transfers }) {
      if (run === undefined) return;
      run.blocks += blocks;
      run.transfers += transfers;
      if (clock.now() - run.toldAt >= (isBar ? drawEveryMs : logEveryMs)) tell(false);
    },
    end() {
      tell(true);
      run = undefined;
    },
    pace,
  };
}

function drawBar(options: {
  chain: string;
  share: number;
  perSecond: number;
  left: number | undefined;
}): string {
  const width = 24;
  const done = Math.round(options.share * width);
  const bar = "█".repeat(done) + "░".repeat(width - done);
  const percent = (100 * options.share).toFixed(1).padStart(5);
  const left = options.left === undefined ? "" : `  ${formatSeconds(options.left)} left`;
  return `${options.chain} ${bar} ${percent}%  ${options.perSecond.toLocaleString("en")} transfers/s${left}`;
}

function formatSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3_600).toFixed(1)} h`;
}
