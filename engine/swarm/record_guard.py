"""What the DHT takes in, from us and from others: only small, signed records.

The checks depend on nothing but the record. A node that kept a record which another refuses would
lose its whole answer there, because hivemind judges answers as a whole; so nothing here may
depend on the clock, and the sizes must never shrink.
"""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.validation import DHTRecord
from hivemind.utils.crypto import RSAPrivateKey

_MAX_VALUE_BYTES = 4096
"""A record under 1 KB, its envelope and a signature, with room for later versions."""
_MAX_SUBKEY_BYTES = 1024
_OWNER, _END = b"[owner:", b"]"
_MAX_REMEMBERED = 4096


class RecordGuard(RSASignatureValidator):  # type: ignore[misc]  # hivemind has no types
    """hivemind's owner signatures, made mandatory."""

    def __init__(self, key: RSAPrivateKey) -> None:
        super().__init__(key)
        self._refused: set[int] = set()
        self.refused = 0
        """Records turned away, each counted once."""

    def validate(self, record: DHTRecord) -> bool:
        """Whether the record may be kept; called on every store and every answer."""
        valid = self._is_valid(record)
        if not valid:
            mark = hash((record.key, record.subkey, record.value))
            if mark not in self._refused:
                if len(self._refused) >= _MAX_REMEMBERED:
                    self._refused.clear()
                self._refused.add(mark)
                self.refused += 1
        return valid

    def _is_valid(self, record: DHTRecord) -> bool:
        subkey = record.subkey or b""
        if len(record.value) > _MAX_VALUE_BYTES or len(subkey) > _MAX_SUBKEY_BYTES:
            return False
        if len(self._PUBLIC_KEY_RE.findall(subkey)) != 1:
            return False  # signed by nobody
        try:
            return bool(super().validate(record))
        except (ValueError, UnsupportedAlgorithm):  # no key at all where one should be
            return False


def owner_of(subkey: bytes) -> bytes:
    """The public key (OpenSSH form) that a subkey names; empty when it is not ours in form."""
    if subkey.startswith(_OWNER) and subkey.endswith(_END):
        return subkey[len(_OWNER) : -len(_END)]
    return b""
