#!/usr/bin/env bash
# Unpacks Debian's nginx and Caddy into a cache, for the tests of documented proxies. Starts no
# service, changes nothing of the system, and needs no root where apt's lists are up to date.
set -euo pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/coinslot/proxies

missing=()
command -v nginx >/dev/null || [ -x "$cache/usr/sbin/nginx" ] || missing+=(nginx)
command -v caddy >/dev/null || [ -x "$cache/usr/bin/caddy" ] || missing+=(caddy)
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "Install ${missing[*]} by your system's package manager: tests of documented proxies run them." >&2
  exit 1
fi
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
cd "$packages"
download() { apt-get -q -o APT::Sandbox::User=root download "${missing[@]}"; }
# A slim image has no lists, and old lists name packages that are gone.
download || { apt-get -q update && download; }
mkdir -p "$cache"
for package in *.deb; do dpkg -x "$package" "$cache"; done
for name in "${missing[@]}"; do
  PATH="$cache/usr/sbin:$cache/usr/bin:$PATH" "$name" $([ "$name" = nginx ] && echo -v || echo version)
done
