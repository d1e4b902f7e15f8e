/**
 * Parent-death guard: the beginning of a command line for a program that ends with its parent,
 * however that ends. The parent keeps the write end of a pipe: the program's standard input. Only
 * the parent has it, so the kernel closes it with the parent, SIGKILL included. A watching shell
 * then reads the end of file, kills the program and removes the directory, if one is given. The
 * guard does not touch a program that has ended by itself. The wait for its end has a bound: some
 * containers never reap zombies, which seem to live on.
 *
 * `exec` gives the program the process id of the shell, so signals that the parent sends arrive
 * directly.
 */
const guardScript = `
signal=$1 directory=$2
shift 2
exec 3<&0
(
  while read -r _; do :; done
  kill -s "$signal" $$ || exit
  if [ -n "$directory" ]; then
    tries=0
    while kill -0 $$ && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
    rm -rf "$directory"
  fi
) <&3 3<&- >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
`;

export type GuardedCommand = {
  file: string;
  args: string[];
};

/**
 * Wraps a command so that it dies with the process that spawns it. Spawn it with standard input as
 * a pipe, and `detached`. A Ctrl-C in the terminal then reaches the parent alone, which may stop it
 * in order.
 *
 * @param signal sent to the program when its parent is gone
 * @param directory removed after the program has ended that way
 */
export function guardedCommand(options: {
  file: string;
  args: readonly string[];
  signal: "KILL" | "QUIT";
  directory?: string;
}): GuardedCommand {
  if (process.platform === "win32") {
    throw new Error("The devnet needs a POSIX shell: run it on Linux, on macOS, or in WSL.");
  }
  const { file, args, signal, directory = "" } = options;
  return { file: "/bin/sh", args: ["-c", guardScript, "sh", signal, directory, file, ...args] };
}
