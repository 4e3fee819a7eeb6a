#!/bin/sh
# Removes what the .run has installed. Chats, keys, settings and models stay unless --everything is given.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
data=${XDG_DATA_HOME:-$HOME/.local/share}
config=${XDG_CONFIG_HOME:-$HOME/.config}
if command -v systemctl > /dev/null; then
    systemctl --user disable --now shoal-engine > /dev/null 2>&1 || true
fi
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
