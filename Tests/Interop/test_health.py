"""`martlet health`, the health check of the container image, against a service that runs."""

from test_command_line import CONFIGURATION, USAGE, martlet

UNAVAILABLE = 69


def test_health_tells_alive_from_ready_and_from_gone(world):
    service = world.martlet()
    service.wait_ready()
    config = service.command[-1]
    for words in ([], ["--ready"]):
        ended = martlet("health", "--config", config, *words)
        assert ended.returncode == 0, ended
        assert '"status":' in ended.stdout
    world.kafka.kill()
    assert martlet("health", "--config", config).returncode == 0
    service.kill()
    for words in ([], ["--ready"]):
        ended = martlet("health", "--config", config, *words)
        assert ended.returncode == UNAVAILABLE, ended
        assert "connect" in ended.stderr


def test_a_configuration_that_cannot_be_read_is_told_apart(tmp_path):
    broken = tmp_path / "martlet.json5"
    broken.write_text("{ http: ")
    ended = martlet("health", "--config", broken)
    assert ended.returncode == CONFIGURATION, ended
    assert f"{broken}:1:" in ended.stderr
    assert martlet("health").returncode == USAGE
