#!/bin/sh
# Makes the secrets of replicas.yaml in the directory secrets beside this file, or in the directory that the first argument names.
# It replaces no file: to change the secrets, remove the directory, run this script and start all services again.
set -eu
dir=${1:-$(dirname "$0")/secrets}
umask 022
mkdir -p "$dir"
chmod 700 "$dir" # the files are readable, because the containers have other users
[ ! -e "$dir/valkey.acl" ] || { echo "$dir has secrets already" >&2; exit 1; }

password=$(openssl rand -hex 32)
hash=$(printf %s "$password" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
openssl rand -hex 32 >"$dir/shared-secret"
echo "ODDSGRAPH_SHARED_URL=redis://oddsgraph:$password@valkey:6379" >"$dir/oddsgraph.env"
cat >"$dir/valkey.acl" <<END
user default off
user oddsgraph on #$hash ~og:* +@read +@write +@scripting +@connection +time
END
