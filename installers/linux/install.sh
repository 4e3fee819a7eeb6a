#!/bin/sh
# Runs out of the unpacked archive: installs Shoal for the person who started it, into folders of theirs.
#
#   sh shoal-VERSION.run                     install, or update, and make it findable
#   sh shoal-VERSION.run -- --beside FOLDER  put this version beside others in FOLDER, and change nothing else
#   FOLDER/uninstall.sh [--everything]       remove it; with --everything chats, keys and models, too
set -eu
umask 022
version=@VERSION@
needed_kb=@NEEDED_KB@
here=$(cd "$(dirname "$0")" && pwd)
data=${XDG_DATA_HOME:-$HOME/.local/share}
root=$HOME/.local/lib/shoal
beside=
fail() { echo "shoal: $1" >&2; exit 1; }

case "${1:-}" in
--beside) [ $# -eq 2 ] || fail "--beside needs a folder."; root=$2 beside=yes ;;
"") ;;
*) fail "there is no option $1; without one Shoal is installed, --beside FOLDER puts it beside another version." ;;
esac
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
    fail "this package is for Linux on x86-64, but this is $(uname -s) on $(uname -m)."
command -v python3 > /dev/null || fail "Shoal needs python3, which is missing; install it with your system's packages."

installed=$(sed -n 's/.*"current": *"\([0-9.]*\)".*/\1/p' "$root/versions.json" 2> /dev/null || true)
[ -n "$beside" ] || [ "$(printf '%s\n' "$installed" "$version" | sort -V | tail -n 1)" = "$version" ] ||
    fail "Shoal $installed is installed, and this is the older $version, which may not read its chats; keep it, or remove it with $root/uninstall.sh first (chats and settings stay)."
mkdir -p "$root/versions" 2> /dev/null ||
    fail "$root cannot be written to; correct its rights, or set HOME to a folder of yours."
free_kb=$(df -Pk "$root" | awk 'NR == 2 { print $4 }')
[ "$free_kb" -ge "$needed_kb" ] ||
    fail "$((needed_kb / 1000)) MB are needed in $root, but only $((free_kb / 1000)) MB are free; free some space."

# First aside, then into place: what is interrupted leaves no half version.
place=$root/versions/$version
rm -rf "$place.new"
cp -a "$here/payload" "$place.new" || { rm -rf "$place.new"; fail "Shoal could not be copied to $root."; }
printf '{"command": ["{here}/shoal-setup", "launch", "shoal"]}\n' > "$place.new/start.json"
if [ -d "$place" ]; then # installed again: its engine stays
    [ ! -d "$place/environment" ] || mv "$place/environment" "$place.new/environment"
    rm -rf "$place"
fi
mv "$place.new" "$place"
if [ -n "$beside" ]; then
    exec "$place/shoal-setup" install
fi

cp "$here/start.py" "$root/start.py"
python3 "$root/start.py" --adopt "$version"
mkdir -p "$HOME/.local/bin"
for name in shoal shoal-engine; do
    word=
    [ "$name" = shoal ] || word=' engine'
    cat > "$root/$name" << LAUNCHER
#!/bin/sh
# Starts the version that is to run.
SHOAL_PACKAGE=run exec python3 "\$(dirname "\$(readlink -f "\$0")")/start.py"$word "\$@"
LAUNCHER
    chmod 755 "$root/$name"
    ln -sf "$root/$name" "$HOME/.local/bin/$name"
done
for folder in applications icons metainfo mime systemd; do
    mkdir -p "$data/$folder"
    cp -R "$here/share/$folder/." "$data/$folder/"
done
quoted=$(printf '%s' "$HOME/.local/bin" | sed 's/[\\&|]/\\&/g')
for file in "$data/applications/shoal.desktop" "$data/systemd/user/shoal-engine.service"; do
    sed -i "s|@BIN@|$quoted|g" "$file"
done
for program in "update-desktop-database $data/applications" "update-mime-database $data/mime"; do
    ! command -v "${program%% *}" > /dev/null || "${program%% *}" "${program#* }" > /dev/null 2>&1 || true
done
cp "$here/uninstall.sh" "$root/uninstall.sh"
echo "Shoal $version is installed: find it among your programs, or run $HOME/.local/bin/shoal."
echo "$root/uninstall.sh removes it."
