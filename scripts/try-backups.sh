#!/usr/bin/env bash
# Runs the commands of docs/operating.md under "Backups", block by block, on a ledger with payments:
# what was written before a backup, or the chosen moment, is there after the restore, what came later
# is not, and the newest program opens it. A backup onto a full disk leaves the one before whole. Needs
# sqlite3, PostgreSQL's server and clients, and the right to mount a disk that fills.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD
fixtures=packages/facilitator/src/ledger/migrations/fixtures/01-654c325
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
for program in sqlite3 initdb pg_ctl pg_basebackup pg_dump psql; do
  command -v "$program" >/dev/null || { echo "Install sqlite3 and postgresql: $program is missing." >&2; exit 1; }
done

place=$(mktemp -d)
chmod 755 "$place"
port=$(node -e 'const s = require("net").createServer().listen(0, () => { console.log(s.address().port); s.close(); })')
export BACKUPS=$place/backups PGDATA=$place/server PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres
export COINSLOT_LEDGER=postgres://postgres@127.0.0.1:$port/coinslot
mkdir "$BACKUPS" "$place/shop"
trap 'as_server pg_ctl stop -m immediate >/dev/null 2>&1 || true; umount "$BACKUPS" 2>/dev/null || true; rm -rf "$place"' EXIT
mount -t tmpfs -o size=128m,mode=777 tmpfs "$BACKUPS" ||
  { echo "Run this as root: only root may mount the disk that fills." >&2; exit 1; }

# as_server COMMAND...: PostgreSQL refuses to run as root.
as_server() {
  if [ "$(id -u)" -ne 0 ]; then "$@"; return; fi
  setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"
}

# run TITLE: runs the block of the document that begins with this comment.
run() {
  local text
  text=$(awk -v title="# $1" '/^```bash$/ { inside = 1; mine = 0; next } /^```$/ { inside = 0; mine = 0 }
    inside && $0 == title { mine = 1 } mine' "$repository/docs/operating.md")
  [ -n "$text" ] || { echo "docs/operating.md has no block \"# $1\"." >&2; exit 1; }
  printf '\n== %s\n' "$1"
  (cd "$place/shop" && as_server bash -euo pipefail -c "$text" >"$place/output" 2>&1)
}
block() { run "$1" || { cat "$place/output"; exit 1; }; }

# fill SIZE: leaves this much of the disk of the backups.
fill() {
  dd if=/dev/zero of="$BACKUPS/filler" bs=64k 2>/dev/null || true
  truncate --size="-$1" "$BACKUPS/filler"
}
clear_disk() { rm "$BACKUPS/filler"; }

# fails TITLE: runs a block on a full disk.
fails() {
  fill 16K
  if run "$1"; then echo "It has not failed on a full disk." >&2; exit 1; fi
  clear_disk
}

# becomes CONDITION: waits for the archiver. It tries again after a minute.
becomes() {
  for _ in $(seq 500); do
    [ "$(psql --tuples-only --no-align --command="select $1 from pg_stat_archiver" postgres)" = t ] && return
    sleep 0.2
  done
  echo "The archiver has not come to: $1" >&2
  cat "$PGDATA/restart.log" >&2
  exit 1
}

# check LEDGER ROWS: the marks in a ledger, which the newest program has opened.
check() {
  node --import tsx --conditions=source --input-type=module -e '
    import { openLedger } from "./packages/facilitator/src/ledger/open-ledger.ts";
    const [url, expected] = process.argv.slice(1);
    const { database, close } = await openLedger({ url, processId: "try-backups" });
    const marks = await database.kysely.selectFrom("sold_names").select("name").where("name", "like", "mark %").orderBy("name").execute();
    const { count } = await database.kysely.selectFrom("payments").select((e) => e.fn.countAll().as("count")).executeTakeFirst();
    await close();
    const found = marks.map(({ name }) => name).join(", ");
    console.log(`${count} payments; ${found}`);
    if (found !== expected || Number(count) === 0) throw new Error(`expected ${expected}`);
  ' -- "$1" "$2"
}
mark() { echo "insert into sold_names (name, used_at) values ('mark $1', 1);"; }

sqlite3 "$place/shop/coinslot.db" <"$repository/$fixtures.sqlite.sql"
check "sqlite:$place/shop/coinslot.db" ""
mark 1 | sqlite3 "$place/shop/coinslot.db"
if [ "$(id -u)" -eq 0 ]; then chown -R nobody "$place"; fi
block "Back up a SQLite ledger"
mark 2 | sqlite3 "$place/shop/coinslot.db"
fails "Back up a SQLite ledger"
block "Restore it: the seller is stopped"
check "sqlite:$place/shop/coinslot.db" "mark 1"
block "Back up a SQLite ledger"

as_server initdb --username=postgres --auth=trust --no-sync --wal-segsize=1 "$PGDATA" >/dev/null
cat >>"$PGDATA/postgresql.conf" <<END
port = $port
unix_socket_directories = ''
END
as_server pg_ctl start --wait --log="$place/server.log" >/dev/null
createdb coinslot
psql --quiet --file="$fixtures.postgres.sql" "$COINSLOT_LEDGER" >/dev/null
check "$COINSLOT_LEDGER" ""
mark 1 | psql --quiet "$COINSLOT_LEDGER"
block "Back up one database"
mark 2 | psql --quiet "$COINSLOT_LEDGER"
# The next dump is larger than the one before.
psql --quiet "$COINSLOT_LEDGER" --command="insert into sold_names (name, used_at)
  select md5(random()::text), 1 from generate_series(1, 20000)"
fails "Back up one database"
block "Restore it: all sellers are stopped"
check "$COINSLOT_LEDGER" "mark 1"
block "Back up one database"

block "Archive the log, once"
block "Back up the server"
block "Back up the server"
mark 3 | psql --quiet "$COINSLOT_LEDGER"
# Half a log file.
fill 512K
file=$(psql --tuples-only --no-align --command="select pg_walfile_name(pg_current_wal_lsn())" postgres)
psql --quiet --tuples-only --command="select pg_switch_wal()" postgres >/dev/null
becomes "failed_count > 0"
clear_disk
becomes "last_archived_wal >= '$file'"
fails "Back up the server"
sleep 1.1
export MOMENT=$(psql --tuples-only --no-align --command="select now()" postgres)
sleep 1.1
mark 4 | psql --quiet "$COINSLOT_LEDGER"
block "Restore the server to a moment: all sellers are stopped"
check "$COINSLOT_LEDGER" "mark 1, mark 3"
printf '\nEvery documented command worked.\n'
