"""vagrant/run.sh tests each machine with the checkout as it is, in a mount namespace, and lets no machine's failure hide another."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

RUN = Path(__file__).parent.parent.parent / "vagrant/run.sh"
# Notes what it is asked, an argument a line; the first machine cannot be provisioned.
VAGRANT = '#!/bin/sh\nprintf "%s\\n" "$@" "" >> "$0.asked"\n[ "$1 $2" != "provision debian12" ]\n'


def test_a_machine_gets_the_checkout_before_it_is_made_ready_and_the_arguments_as_they_were(
    tmp_path: Path,
) -> None:
    vagrant = tmp_path / "vagrant"
    vagrant.write_text(VAGRANT)
    vagrant.chmod(0o755)
    asked = ["all", "tests/kernel", "-k", "sni and not 'slow'"]
    done = subprocess.run(["sh", RUN, *asked], env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert done.returncode == 1
    calls = [call.split("\n") for call in (tmp_path / "vagrant.asked").read_text().split("\n\n")[:-1]]
    ready = [["up", "--no-provision"], ["rsync"], ["provision"]]
    first, second = ([[*words, box] for words in ready] for box in ("debian12", "ubuntu2404"))
    assert calls[:-1] == [*first, *second]
    *ssh, command = calls[-1]
    assert ssh == ["ssh", "ubuntu2404", "-c"]
    words = shlex.split(command)
    assert words[words.index("sudo") :][:3] == ["sudo", "unshare", "-m"]
    assert words[-3:] == asked[1:]
