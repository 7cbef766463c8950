"""Shared folder in an object store, such as `s3://bucket/prefix`, by the library obstore (extra `s3`).

Credentials and endpoints are read from the environment, for example from `AWS_ACCESS_KEY_ID`.
"""

# pyright: reportUnknownMemberType=false
# The types of a listing depend on a library that is not needed here.

from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta

from ...core.errors import SyncRefused
from ...core.home import extra_command


class Bucket:
    """Files of an object store by relative path. An object is written completely or not at all."""

    def __init__(self, url: str, seconds: float | None = None) -> None:
        """Prepare access. `seconds` limits the repetitions of a request, which otherwise take minutes.

        Raises:
            SyncRefused: The URL is unsupported, or the library is not installed.
        """
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            hint = extra_command("s3")
            raise SyncRefused("Buckets need the library obstore, which is not installed", hint=hint) from None
        self._obstore = obstore
        try:
            self._store = from_url(
                url, retry_config=None if seconds is None else {"retry_timeout": timedelta(seconds=seconds)}
            )
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise SyncRefused(f"{url}: {error}", hint="Use a folder, or a URL such as s3://bucket/prefix.") from None
        self._url = url

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Raise `SyncRefused` for an error of the library. A missing object raises `FileNotFoundError`."""
        try:
            yield
        except self._obstore.exceptions.BaseError as error:
            hint = "Check the name of the bucket, the network, the credentials in the environment and their rights."
            raise SyncRefused(f"{self._url}: {error}", hint=hint) from None

    def folders(self) -> list[str]:
        """Return the names of the folders. Raises `SyncRefused` if the bucket cannot be reached."""
        with self._translated():
            listing = self._obstore.list_with_delimiter(self._store)
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in listing["common_prefixes"])

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of each file in a folder, in bytes."""
        with self._translated():
            objects = self._obstore.list_with_delimiter(self._store, prefix=folder)["objects"]
        return {entry["path"].rpartition("/")[2]: entry["size"] for entry in objects}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            with self._translated():
                return bytes(self._obstore.get(self._store, name).bytes())
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file."""
        with self._translated():
            self._obstore.put(self._store, name, data)

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        with suppress(FileNotFoundError), self._translated():
            self._obstore.delete(self._store, name)
