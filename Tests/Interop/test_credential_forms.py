"""Every form that keys and certificates come in: made with openssl, used by the service, judged by others."""

import subprocess
import time

import pytest

from apns_standin import Answer
from contract import check_result
from credentials import SigningKey
from world import as_record, device_token, request

# They share what takes long to start.
pytestmark = pytest.mark.xdist_group("credential forms")

#: Shell commands that turn `pkcs8.pem`, a key as Apple hands it out, into `key.p8`.
KEY_FORMS = {
    "as-apple-gives-it": "cp pkcs8.pem key.p8",
    "crlf": "sed 's/$/\\r/' pkcs8.pem > key.p8",
    "trailing-blank-lines": "(sed 's/$/  /' pkcs8.pem; printf '\\n \\n\\t\\n') > key.p8",
    "no-final-newline": 'printf %s "$(cat pkcs8.pem)" > key.p8',
    "byte-order-mark": "(printf '\\357\\273\\277'; cat pkcs8.pem) > key.p8",
    "sec1": "openssl ec -in pkcs8.pem -out key.p8",
    "sec1-with-parameters": "(openssl ecparam -name prime256v1; openssl ec -in pkcs8.pem) > key.p8",
    "explicit-public-key": "openssl pkcs8 -topk8 -nocrypt -in pkcs8.pem -outform DER | "
    "openssl pkcs8 -inform DER -nocrypt -topk8 -out key.p8",
}

#: Shell commands that make `file` (and `key`, if the form has two files) of `leaf.pem`, `chain.pem` and `key.pem`.
#: The password is that of the file `password`; a form names it where it needs one.
CERTIFICATE_FORMS = {
    "two-files": "cat leaf.pem chain.pem > file; cp key.pem key",
    "one-file": "cat leaf.pem chain.pem key.pem > file",
    "key-first": "cat key.pem leaf.pem chain.pem > file",
    "chain-first": "cat chain.pem key.pem leaf.pem > file",
    "crlf": "cat leaf.pem chain.pem key.pem | sed 's/$/\\r/' > file",
    "blank-lines": "(cat leaf.pem; echo; cat chain.pem; printf '\\n \\n'; cat key.pem; printf '\\n\\n') > file",
    "traditional-key": "openssl pkey -in key.pem -traditional -out old.pem; cat leaf.pem chain.pem old.pem > file",
    "encrypted-key": "openssl pkcs8 -topk8 -v2 aes256 -passout file:password -in key.pem -out key; "
    "cat leaf.pem chain.pem > file",
    "encrypted-key-in-one-file": "openssl pkcs8 -topk8 -v2 aes256 -passout file:password -in key.pem -out locked.pem; "
    "cat locked.pem leaf.pem chain.pem > file",
    "encrypted-traditional-key": "openssl pkey -in key.pem -traditional -aes256 -passout file:password -out key; "
    "cat leaf.pem chain.pem > file",
    "p12": "openssl pkcs12 -export -inkey key.pem -in leaf.pem -certfile chain.pem -passout file:password -out file",
    "p12-friendly-name": "openssl pkcs12 -export -name 'Apple Push Services' -inkey key.pem -in leaf.pem "
    "-certfile chain.pem -passout file:password -out file",
    "p12-without-a-password": "openssl pkcs12 -export -inkey key.pem -in leaf.pem -certfile chain.pem -passout pass: "
    "-out file",
    "p12-not-encrypted": "openssl pkcs12 -export -keypbe NONE -certpbe NONE -inkey key.pem -in leaf.pem "
    "-certfile chain.pem -passout file:password -out file",
    "p12-of-keychain-access": "openssl pkcs12 -export -legacy -inkey key.pem -in leaf.pem -certfile chain.pem "
    "-passout file:password -out file",
    "p12-3des": "openssl pkcs12 -export -keypbe PBE-SHA1-3DES -certpbe PBE-SHA1-3DES -macalg sha1 -inkey key.pem "
    "-in leaf.pem -certfile chain.pem -passout file:password -out file",
    "p12-made-into-pem": "openssl pkcs12 -export -inkey key.pem -in leaf.pem -certfile chain.pem "
    "-passout file:password -out a.p12; openssl pkcs12 -in a.p12 -passin file:password -nodes -out file",
}
NEED_PASSWORD = {name for name, command in CERTIFICATE_FORMS.items() if "file:password" in command} - {
    "p12-made-into-pem"
}
PASSWORD = "correct horse"


def run(command, directory):
    made = subprocess.run(["bash", "-ec", command], cwd=directory, capture_output=True, text=True, check=False)
    assert made.returncode == 0, (command, made.stderr)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A root that the stand-in trusts, and an authority below it that signs: a client must send that one along."""
    directory = tmp_path_factory.mktemp("client-authority")
    (directory / "ca.cnf").write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n")
    run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=Client Root' "
        "-keyout root.key -out root.pem -addext keyUsage=critical,keyCertSign; "
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=Client Authority' "
        "-keyout middle.key -out middle.csr; "
        "openssl x509 -req -in middle.csr -CA root.pem -CAkey root.key -CAcreateserial -days 30 -extfile ca.cnf "
        "-out middle.pem",
        directory,
    )
    return directory


def issue(directory, authority, bundle, algorithm="rsa", days=20):
    """Makes `leaf.pem`, `chain.pem`, `key.pem` and `password` as Apple and its customer would."""
    kinds = {"rsa": "-newkey rsa:2048", "ec": "-newkey ec -pkeyopt ec_paramgen_curve:P-256"}
    directory.mkdir()
    (directory / "password").write_text(PASSWORD + "\n")
    (directory / "leaf.cnf").write_text(
        "extendedKeyUsage=clientAuth\n1.2.840.113635.100.6.3.2=ASN1:NULL\n"
        "1.2.840.113635.100.6.3.6=ASN1:SEQUENCE:topics\n[topics]\n"
        f"a=UTF8:{bundle}\nb=SEQUENCE:app\nc=UTF8:{bundle}.voip\nd=SEQUENCE:voip\n"
        "[app]\na=UTF8:app\n[voip]\na=UTF8:voip\n"
    )
    run(
        f"openssl req {kinds[algorithm]} -nodes -keyout key.pem -out leaf.csr "
        f"-subj '/UID={bundle}/CN=Apple Push Services: {bundle}'; "
        f"openssl x509 -req -in leaf.csr -CA {authority}/middle.pem -CAkey {authority}/middle.key -CAcreateserial "
        f"-days {days} -extfile leaf.cnf -out leaf.pem; cp {authority}/middle.pem chain.pem",
        directory,
    )


def settings_of(directory, name):
    certificate = {"file": str(directory / "file")}
    if (directory / "key").exists():
        certificate["keyFile"] = str(directory / "key")
    if name in NEED_PASSWORD:
        certificate["passwordFile"] = str(directory / "password")
    return certificate


def test_every_form_of_a_key_signs_provider_tokens(world):
    """An app for each form, with a key of its own; PyJWT judges what each of them signs."""
    for number, (name, command) in enumerate(KEY_FORMS.items()):
        directory = world.directory / name
        directory.mkdir()
        run(
            f"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out pkcs8.pem; {command}; "
            "openssl pkey -in pkcs8.pem -pubout -out public.pem",
            directory,
        )
        key = SigningKey(directory / "key.p8", f"KEY{number:07}", "DEF123GHIJ", (directory / "public.pem").read_text())
        world.keys[key.key_id] = key
        world.app(name, f"com.example.{name}", key)
    world.martlet().wait_ready()
    fields = {name: request(device_token(number), app=name) for number, name in enumerate(KEY_FORMS)}
    world.send([as_record(one) for one in fields.values()])
    found = world.results.by_id([one["id"] for one in fields.values()])
    for name, one in fields.items():
        assert check_result(found[one["id"]][0])["status"] == "delivered", name
        (seen,) = world.server.seen_for(one["token"])
        assert (seen.claims["alg"], seen.claims["kid"]) == ("ES256", world.apps[name].key.key_id), name


@pytest.mark.parametrize("algorithm", ["rsa", "ec"])
def test_every_form_of_a_certificate_is_shown_to_the_server(world, authority, algorithm):
    """An app for each form, with a certificate of its own; Python's TLS server verifies it and tells whose it is."""
    world.client_authority = authority / "root.pem"
    for name, command in CERTIFICATE_FORMS.items():
        directory = world.directory / name
        issue(directory, authority, f"com.example.{name}", algorithm)
        run(command, directory)
        world.app(name, f"com.example.{name}", certificate=settings_of(directory, name))
    martlet = world.martlet()
    martlet.wait_ready(60)
    fields = {name: request(device_token(number), app=name) for number, name in enumerate(CERTIFICATE_FORMS)}
    world.send([as_record(one) for one in fields.values()])
    found = world.results.by_id([one["id"] for one in fields.values()])
    for name, one in fields.items():
        assert check_result(found[one["id"]][0])["status"] == "delivered", name
        (seen,) = world.server.seen_for(one["token"])
        assert seen.client == f"com.example.{name}"
        assert "authorization" not in seen.headers, "no provider token beside a certificate"
        assert seen.headers["apns-topic"] == f"com.example.{name}"


def test_a_certificate_limits_what_its_app_sends(world, authority):
    """Refused before it is sent, with the rule: `location`, and topics that are not in the certificate."""
    world.client_authority = authority / "root.pem"
    directory = world.directory / "app"
    issue(directory, authority, "com.example.app")
    run(CERTIFICATE_FORMS["two-files"], directory)
    world.app("app", "com.example.app", certificate=settings_of(directory, "two-files"))
    martlet = world.martlet().wait_ready()
    kinds = {"alert": None, "voip": None, "location": "BadPushType", "complication": "BadPushType"}
    fields = {kind: request(device_token(n), app="app", push_type=kind) for n, kind in enumerate(kinds)}
    world.send([as_record(one) for one in fields.values()])
    found = world.results.by_id([one["id"] for one in fields.values()])
    for kind, rule in kinds.items():
        result = found[fields[kind]["id"]][0].json
        assert (result["status"], result["reason"]) == (("invalid", rule) if rule else ("delivered", None)), result
        assert len(world.server.seen_for(fields[kind]["token"])) == (0 if rule else 1)
    sent = len(world.server.seen)
    for kind in ("location", "complication"):
        command = ["send", *martlet.command[2:], "--app", "app", "--token", device_token(9), "--push-type", kind]
        ended = subprocess.run([world.binary, *command, "--alert", "Hi"], capture_output=True, text=True, check=False)
        assert ended.returncode != 0, kind
        assert "nothing was sent" in ended.stderr, ended
    assert len(world.server.seen) == sent
    message = found[fields["complication"]["id"]][0].json["message"]
    assert "com.example.app.complication" in message, message
    assert "com.example.app, com.example.app.voip" in message, message


def test_a_certificate_that_ends_soon_is_told_everywhere(world, authority):
    """By the check, in a metric, and in the log."""
    world.client_authority = authority / "root.pem"
    directory = world.directory / "app"
    issue(directory, authority, "com.example.app", days=6)
    run(CERTIFICATE_FORMS["two-files"], directory)
    world.app("app", "com.example.app", certificate=settings_of(directory, "two-files"))
    martlet = world.martlet()
    martlet.wait_ready()
    until = subprocess.run(
        ["openssl", "x509", "-in", str(directory / "leaf.pem"), "-noout", "-enddate", "-dateopt", "iso_8601"],
        capture_output=True, text=True, check=True,
    ).stdout.strip().partition("=")[2].replace(" ", "T")  # fmt: skip
    checked = subprocess.run([world.binary, "check", *martlet.command[2:]], capture_output=True, text=True, check=False)
    assert "expires soon" in checked.stdout + checked.stderr, checked
    assert until[:10] in checked.stdout + checked.stderr, checked
    left = martlet.metrics()['martlet_certificate_expiry_timestamp_seconds{app="app"}'] - time.time()
    assert 5.9 * 86_400 < left < 6.1 * 86_400
    told = [line for line in martlet.text().splitlines() if '"certificate_expires"' in line]
    assert len(told) == 1, told
    assert "less than 7 days" in told[0], told


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("kind", ["token", "certificate"])
def test_a_connection_that_follows_another_resumes_its_session(world, authority, version, kind):
    world.tls_version = version
    if kind == "certificate":
        world.client_authority = authority / "root.pem"
        issue(world.directory / "app", authority, "com.example.app")
        run(CERTIFICATE_FORMS["two-files"], world.directory / "app")
        world.app("app", "com.example.app", certificate=settings_of(world.directory / "app", "two-files"))
    else:
        world.app("app", "com.example.app")
    world.martlet(lanes=1, maxConnectionsPerApp=1).wait_ready()
    world.server.answer(device_token(1), Answer(goaway=0), Answer())
    world.send([as_record(request(device_token(0), app="app"))])
    world.results.count(1)
    world.send([as_record(request(device_token(1), app="app"))])
    world.results.count(2)
    first, second = world.server.seen_for(device_token(1))
    assert first.connection != second.connection
    shaken = world.server.handshakes
    assert {one.version for one in shaken} == {version.replace("_", ".")}
    assert [one.resumed for one in shaken] == [False, True]
