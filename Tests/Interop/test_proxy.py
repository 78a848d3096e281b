"""Through an HTTP proxy to the product's look-alike of APNs: `martlet send` and the service, with a name or without."""

import os
import signal

import pytest

import planted
from connect_proxy import ConnectProxy
from processes import MockAPNs
from test_command_line import USAGE, martlet
from test_send import TOKEN, UNAVAILABLE, answers
from waiting import until
from world import as_record, device_token, request


@pytest.fixture
def apns(world):
    """The look-alike, and how it is reached; the world's key is known to it."""
    keys = world.directory / "mock"
    options = ("--directory", str(keys), "--make-key", "ABC123DEFG:DEF123GHIJ")
    with MockAPNs(world.binary, world.directory / "mock.log", *options) as mock:
        mock.key = keys / "AuthKey_ABC123DEFG.p8"
        mock.server = {"host": "localhost", "port": mock.port, "caFile": str(mock.authority)}
        yield mock


@pytest.fixture
def secrets(world):
    """Files with the user name and the password for a proxy."""
    username, password = world.directory / "proxy-user", world.directory / "proxy-password"
    username.write_text("martlet\n")
    password.write_text(planted.PASSWORD + "\n")
    return username, password


def send(apns, proxy, *arguments):
    return martlet(
        "send", "--p8", apns.key, "--team-id", "DEF123GHIJ", "--topic", "com.example.shop", "--host", "localhost",
        "--port", apns.port, "--ca", apns.authority, "--proxy", proxy.address, "--token", TOKEN, "--alert", "x",
        *arguments,
    )  # fmt: skip


def test_send_goes_through_a_proxy(apns):
    with ConnectProxy() as proxy:
        ended = send(apns, proxy, "--json", "-v")
        assert ended.returncode == 0, ended.stderr
        assert answers(ended)[0]["status"] == "delivered"
        assert proxy.tunnels == [f"localhost:{apns.port}"]
        assert f"through {proxy.address}" in ended.stderr


def test_send_tells_a_proxy_who_it_is(apns, secrets):
    username, password = secrets
    with ConnectProxy("martlet", planted.PASSWORD) as proxy:
        known = ("--proxy-username-file", username, "--proxy-password-file", password)
        ended = send(apns, proxy, *known, "-v")
        assert ended.returncode == 0, ended.stderr
        assert len(proxy.tunnels) == 1
        assert not proxy.refusals
        assert planted.PASSWORD not in ended.stdout + ended.stderr
        # No name, then a wrong password: each is told, with what to mend.
        ended = send(apns, proxy, "--attempts", "1")
        assert ended.returncode == UNAVAILABLE
        assert f"proxy {proxy.address}: refuses CONNECT: 407 Proxy Authentication Required" in ended.stdout
        assert "it wants a user name and a password" in ended.stdout
        password.write_text("wrong")
        ended = send(apns, proxy, *known, "--attempts", "1")
        assert ended.returncode == UNAVAILABLE
        assert "it does not take this user name and password" in ended.stdout
        assert len(proxy.tunnels) == 1
    ended = send(apns, proxy, "--proxy-password-file", password)
    assert ended.returncode == USAGE
    assert "--proxy-username-file" in ended.stderr
    ended = send(apns, proxy, "--attempts", "1")
    assert ended.returncode == UNAVAILABLE
    assert f"proxy {proxy.address}: " in ended.stdout
    assert "Connection refused" in ended.stdout


def test_the_service_goes_through_a_proxy_and_hears_of_a_new_password(world, apns, secrets):
    """One app has the proxy of all, another one its own, whose password is wrong until the file is put right."""
    username, password = secrets
    with ConnectProxy() as common, ConnectProxy("martlet", planted.PASSWORD) as own:
        world.app("shop-ios", server=apns.server)
        world.app(
            "strict", "com.example.strict", server=apns.server,
            proxy={
                "host": "127.0.0.1", "port": own.port, "usernameFile": str(username), "passwordFile": str(password),
            },
        )  # fmt: skip
        configuration = world.configuration(0, proxy={"host": "127.0.0.1", "port": common.port})
        for app in configuration["apps"].values():
            app["token"]["keyFile"] = str(apns.key)
        password.write_text("wrong\n")
        martlet = world.martlet_from(configuration)
        world.send([as_record(request(device_token(number))) for number in range(20)])
        world.send([as_record(request(device_token(number), app="strict")) for number in range(20)])
        first = world.results.count(20, timeout=60)
        assert {(record.json["app"], record.json["status"]) for record in first} == {("shop-ios", "delivered")}
        assert set(common.tunnels) == {f"localhost:{apns.port}"}
        until("the refusal is told", lambda: "does not take this user name and password" in martlet.text(), 30)
        assert not own.tunnels
        # A reload takes up the right one, and what waited goes out.
        password.write_text(planted.PASSWORD + "\n")
        os.kill(martlet.pid, signal.SIGHUP)
        both = world.results.count(40, timeout=60)
        assert {record.json["status"] for record in both} == {"delivered"}
        assert own.tunnels
        # A proxy that is gone and back again: nothing is lost.
        common.cut()
        world.send([as_record(request(device_token(number))) for number in range(100, 120)])
        assert {record.json["status"] for record in world.results.count(60, timeout=60)} == {"delivered"}
        assert planted.PASSWORD not in martlet.text()
