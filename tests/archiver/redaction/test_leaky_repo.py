"""The secrets of a deliberately leaky repository are found."""

import csv
import tarfile

import pytest

from palaver.archiver.redaction import Redactor

from ...shared import SHARED

PACKED = SHARED / "hostile" / "leaky-repo.tar.gz"

UNCLAIMED = {
    ".bash_profile": 2,  # 'dummy-pass' and 'sampleHerokuKey' are recognisable examples
    ".esmtprc": 2,  # the password is "password"
    "config": 1,  # the password is "irc_pass", a name
    "db/.pgpass": 1,  # the password is "password", identified only by its column
    "db/dbeaver-data-sources.xml": 1,  # the password is "password"
    "web/ruby/config/master.key": 1,  # only digits: the file name alone identifies the secret
}
"""Secrets that the rules do not cover: declared non-secrets, and secrets that text alone does not reveal."""
ABSENT = {
    ".ftpconfig": 1,
    "deployment-config.json": 2,
    "filezilla/filezilla.xml": 1,
    "filezilla/recentservers.xml": 1,
    "web/var/www/.env": 2,
}
"""Secrets that the repository's table counts but its files do not contain."""


@pytest.mark.skipif(not PACKED.exists(), reason="the shared repository is not here")
def test_leaky_repo() -> None:
    """At least 95 of 100 covered secrets are found."""
    redactor = Redactor(b"0123456789abcdef")
    with tarfile.open(PACKED) as packed:
        files = {
            name.removeprefix("leaky-repo/"): content.read().decode(errors="replace")
            for name, content in ((member.name, packed.extractfile(member)) for member in packed if member.isfile())
            if content
        }
    rows = csv.reader(line for line in files[".leaky-meta/secrets.csv"].splitlines() if line and line[0] != "#")
    risks = {
        name: int(count) - UNCLAIMED.get(name, 0) - ABSENT.get(name, 0) for name, count, _ in rows if name in files
    }
    found = {name: min(count, len(redactor.redact(files[name]).findings)) for name, count in risks.items()}

    assert sum(risks.values()) > 50
    assert sum(found.values()) >= 0.95 * sum(risks.values()), {
        n: (found[n], c) for n, c in risks.items() if found[n] < c
    }
