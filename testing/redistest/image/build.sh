#!/bin/sh
# Builds a small image from this machine's own redis-server (or valkey-server) and
# the shared libraries it needs, for tests where no image can be pulled.
#
#   testing/redistest/image/build.sh [tag]        default tag: limiters-redis:local
#
# The image holds the server under the name redis-server, its libraries, an empty
# /data, and nothing else. Needs docker, tar and ldd.
set -eu

tag=${1:-limiters-redis:local}
server=$(command -v redis-server || command -v valkey-server) || {
	echo "build.sh: neither redis-server nor valkey-server on PATH" >&2
	exit 1
}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT INT TERM

mkdir -p "$root/usr/bin" "$root/data" "$root/tmp"
chmod 1777 "$root/tmp"
cp -L "$server" "$root/usr/bin/redis-server"
# Each line of ldd is "name => path (address)" or "path (address)"; a static
# binary has none.
{ ldd "$server" 2>/dev/null || true; } | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i }' | sort -u |
	while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done

tar -C "$root" -c . | docker import \
	--change 'ENV PATH=/usr/bin' \
	--change 'WORKDIR /data' \
	--change 'EXPOSE 6379' \
	--change 'CMD ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"]' \
	- "$tag" >/dev/null
echo "$tag: $("$root/usr/bin/redis-server" --version)"
