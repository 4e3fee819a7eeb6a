"""What the DHT takes in, from us and from others: only small, signed records.

The checks depend on nothing but the record. A node that kept a record which another refuses would
lose its whole answer there, because hivemind judges answers as a whole; so nothing here may
depend on the clock, and the sizes must never shrink.
"""

from __future__ import annotations

from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.validation import DHTRecord

_MAX_VALUE_BYTES = 4096
"""A record under 1 KB, its envelope and a signature, with room for later versions."""
_MAX_SUBKEY_BYTES = 1024


class RecordGuard(RSASignatureValidator):  # type: ignore[misc]  # hivemind has no types
    """hivemind's owner signatures, made mandatory."""

    def validate(self, record: DHTRecord) -> bool:
        """Whether the record may be kept; called on every store and every answer."""
        subkey = record.subkey or b""
        if len(record.value) > _MAX_VALUE_BYTES or len(subkey) > _MAX_SUBKEY_BYTES:
            return False
        if len(self._PUBLIC_KEY_RE.findall(subkey)) != 1:
            return False  # signed by nobody
        try:
            return bool(super().validate(record))
        except ValueError:  # no key at all where one should be
            return False
