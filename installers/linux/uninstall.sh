#!/bin/sh
# Removes what the .run has installed. Chats, keys, settings and models stay unless --everything is given.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
real=$(cd "$root" && pwd -P)
data=${XDG_DATA_HOME:-$HOME/.local/share}
config=${XDG_CONFIG_HOME:-$HOME/.config}
if command -v systemctl > /dev/null; then
    systemctl --user disable --now shoal-engine > /dev/null 2>&1 || true
fi
# The app first, which ends an engine that it has started; each by the number that it has left, and only if
# that process is of this installation.
state=${XDG_STATE_HOME:-$HOME/.local/state}/shoal
[ -z "${SHOAL_HOME:-}" ] || state=$SHOAL_HOME/state
is_ours() { [ -n "$1" ] && tr '\0' '\n' 2> /dev/null < "/proc/$1/cmdline" | grep -qF "$real/"; }
end() {
    ! is_ours "$1" || kill "$1" 2> /dev/null || true
    waited=0
    while is_ours "$1"; do
        if [ "$waited" -ge 30 ]; then
            echo "shoal: Shoal still runs (process $1); quit it, then start this again." >&2
            exit 1
        fi
        sleep 1
        waited=$((waited + 1))
    done
}
end "$(sed -n '1s/^\([0-9][0-9]*\).*/\1/p' "$state/app.lock" 2> /dev/null || true)"
end "$(sed -n 's/.*"pid": *\([0-9][0-9]*\).*/\1/p' "$state/engine.json" 2> /dev/null || true)"
rm -f "$HOME/.local/bin/shoal" "$HOME/.local/bin/shoal-engine" "$config/autostart/shoal.desktop" \
    "$data/applications/shoal.desktop" "$data/applications/shoal-invites.desktop" \
    "$data/mime/packages/shoal.xml" "$data/metainfo/io.github.shoal.shoal.metainfo.xml" \
    "$data/systemd/user/shoal-engine.service"
rm -f "$data/icons/hicolor/scalable/apps/shoal.svg" "$data"/icons/hicolor/*/apps/shoal.png
for program in "update-desktop-database $data/applications" "update-mime-database $data/mime"; do
    ! command -v "${program%% *}" > /dev/null || "${program%% *}" "${program#* }" > /dev/null 2>&1 || true
done
rm -rf "$root"
if [ "${1:-}" = --everything ]; then
    rm -rf "$data/shoal" "$config/shoal" "${XDG_CACHE_HOME:-$HOME/.cache}/shoal" \
        "${XDG_STATE_HOME:-$HOME/.local/state}/shoal"
    echo "Shoal is removed, with your chats, keys, settings and models."
else
    echo "Shoal is removed. Your chats, keys, settings and models stay in $data/shoal, $config/shoal and ~/.cache/shoal."
fi
