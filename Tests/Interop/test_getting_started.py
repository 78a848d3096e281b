"""docs/getting-started.md, done by a new user: its blocks, as they stand, one after the other in one shell."""

import json
import re
import subprocess
import time

from processes import ROOT, find_binary, free_port

PAGE = ROOT / "docs" / "getting-started.md"


def blocks() -> list[str]:
    """What the page says to paste into a shell."""
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_steps_lead_from_nothing_to_an_invalid_token_event(tmp_path):
    steps = blocks()
    assert len(steps) == 6
    # The ports of the page may be in use on this machine.
    script = (
        "\n".join(["set -e -o pipefail", *steps]).replace("2197", str(free_port())).replace("9464", str(free_port()))
    )
    begun = time.monotonic()
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"PATH": f"{find_binary().parent}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    log = tmp_path / "first-steps" / "martlet.log"
    assert ended.returncode == 0, (ended, log.read_text() if log.exists() else "no log")
    assert time.monotonic() - begun < 300
    out = ended.stdout
    assert "✓ martlet.json5: can be used" in out
    assert "✓ reaching APNs at localhost" in out
    assert "✗" not in out
    assert "1 request published to push.requests" in out
    assert "2 requests published to push.requests" in out
    lines = out.splitlines()
    assert sum(" delivered 200 " in line for line in lines) == 2, out
    (rejected,) = [line for line in lines if " rejected 410 Unregistered " in line]
    assert "dead0410445566778899aabbccddeeff" in rejected
    assert "id order-43" in rejected
    (event,) = [line for line in lines if re.search(r"Z  Unregistered  +shop-ios ", line)]
    assert "dead0410445566778899aabbccddeeff" in event
    assert json.loads((tmp_path / "first-steps" / "health.json").read_text().splitlines()[-1])["status"] == "ready"


def test_the_message_that_the_page_shows_is_the_programs_own(tmp_path):
    (shown,) = re.findall(r"`requests\.jsonl:2: (.*?)`", PAGE.read_text(encoding="utf-8").replace("\n", " "))
    config = tmp_path / "martlet.json5"
    key = tmp_path / "key.p8"
    subprocess.run(["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", key], check=True)
    config.write_text(
        json.dumps(
            {
                "kafka": {"brokers": "127.0.0.1:1"},
                "apps": {
                    "shop-ios": {
                        "bundleId": "com.example.shop",
                        "token": {"keyFile": str(key), "keyId": "ABC123DEFG", "teamId": "DEF123GHIJ"},
                    }
                },
            }
        )
    )
    good = {"app": "shop-ios", "token": "ab12", "payload": {}}
    (tmp_path / "requests.jsonl").write_text(json.dumps(good) + "\n" + json.dumps({**good, "priority": 7}) + "\n")
    ended = subprocess.run(
        [find_binary(), "produce", "--config", config, "--file", "requests.jsonl", "--dry-run"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 65, ended
    assert ended.stderr == f"requests.jsonl:2: {shown}\n"
