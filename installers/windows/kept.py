"""Chats, batches, settings and keys that outlast a removal, in an archive outside of the distribution."""

from __future__ import annotations

import itertools
import tarfile
from dataclasses import dataclass
from pathlib import Path

from app.wsl import Wsl
from installers.setup_steps.report import SetupFailed
from installers.windows.report import Report

_HAS_OWN = 3
_RESTORE = f"""set -eu
cd
data=.local/share/shoal
if [ -e $data/shoal.sqlite3 ]; then exit {_HAS_OWN}; fi
rm -rf .restore
mkdir -m 700 .restore
cat > .restore/all.tar
[ $(wc -c < .restore/all.tar) = $size ]
tar -xf .restore/all.tar -C .restore
if [ -e .restore/$data/shoal.sqlite3 ]; then mv .restore/$data/shoal.sqlite3 .restore/last; fi
for folder in .config/shoal $data; do
  mkdir -p $folder
  for item in .restore/$folder/* .restore/$folder/.[!.]*; do
    if [ -e "$item" ]; then
      rm -rf "$folder/${{item##*/}}"
      mv "$item" $folder/
    fi
  done
done
sync
if [ -e .restore/last ]; then mv .restore/last $data/shoal.sqlite3; fi
rm -rf .restore
"""
"""Unpacks what was kept, from its input. The database is the last to come to its place: as long as it
is not there, all is done again. The size is compared because tar takes an archive for whole that ends
between two files."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is saved of our distribution."""

    wsl: Wsl
    report: Report

    def restore(self, kept: Path) -> None:
        """Put back what an earlier Shoal's removal kept, if there is any and the engine has no own.

        The archive stays, under another name: `restored.tar` when all of it is back, until the next
        removal; a number when the engine has chats of its own, for good.

        Raises:
            SetupFailed: It is not back; the next run does it again.
        """
        if not kept.exists():
            return
        self.report.progress(1.0, "Putting chats and settings back")
        script = f"size={kept.stat().st_size}\n{_RESTORE}"
        answer = self.wsl.run("sh", "-c", script, input_file=kept)
        if answer.code == _HAS_OWN:
            aside = _free_name(kept)
            kept.replace(aside)
            self.report.note(f"this engine has chats of its own, so the kept ones stay in {aside}")
        elif answer.code == 0:
            kept.replace(kept.with_name("restored.tar"))
        else:
            self.report.note(f"exit code {answer.code}: {answer.text.strip()}")
            raise SetupFailed(
                f"Chats and settings could not be put back, but are safe in {kept}; free some space and "
                f"start the setup again. Details are in {self.report.log}."
            )

    def keep(self, kept: Path) -> None:
        """Save chats, batches, settings and the node's name outside of the distribution.

        Raises:
            SetupFailed: They are not saved.
        """
        self.wsl.terminate()  # an engine that still runs would write into what is read
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        found = "$(ls -d .config/shoal .local/share/shoal 2> /dev/null)"
        script = f'cd && set -- {found} && if [ $# -gt 0 ]; then tar -cf - "$@"; fi'
        answer = self.wsl.run("sh", "-c", script, output_file=part)
        if answer.code == 0 and part.stat().st_size == 0:  # the engine has never run
            part.unlink()
            return
        if answer.code != 0 or not tarfile.is_tarfile(part):
            part.unlink(missing_ok=True)
            raise SetupFailed(
                f"Chats and settings could not be saved to {kept.parent}, so nothing was removed; free "
                "some space and start again, or choose to delete them."
            )
        if kept.exists():  # never put back
            kept.replace(_free_name(kept))
        part.replace(kept)
        kept.with_name("restored.tar").unlink(missing_ok=True)


def _free_name(kept: Path) -> Path:
    numbered = (kept.with_stem(f"{kept.stem}-{number}") for number in itertools.count(1))
    return next(name for name in numbered if not name.exists())
