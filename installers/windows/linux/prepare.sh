#!/bin/sh
# Makes the fresh distribution Shoal's own; run in it as root, again after every update.
set -eu
here=$(dirname "$0")
user=shoal
id -u "$user" > /dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
install -m 644 "$here/wsl.conf" /etc/wsl.conf
install -d -m 755 /opt/shoal
chown -R "$user": /opt/shoal
