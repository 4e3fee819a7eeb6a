import pytest

from engine.http.security import has_token, is_loopback_origin, is_our_host


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123", "[::1]:8123"]
)
def test_loopback_names_with_our_port_are_ours(host):
    assert is_our_host(host, 8123)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:80",
        "example.org:8123",
        "127.0.0.1.example.org:8123",
        "",
        ":8123",
        "localhost:8123@example.org",
        "evil@localhost:8123",
        "localhost:8123/x",
        "localhost:x",
        "[::1",
        "0.0.0.0:8123",
        "localhost:99999",
    ],
)
def test_any_other_host_is_not(host):
    assert not is_our_host(host, 8123)


def test_a_host_without_port_means_port_80():
    assert is_our_host("localhost", 80)


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://127.0.0.1", "https://localhost", "http://[::1]:5"]
)
def test_pages_of_this_machine_may_call(origin):
    assert is_loopback_origin(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://example.org",
        "http://localhost.example.org",
        "file://",
        "localhost",
        "http://127.0.0.1@example.org",
        "chrome-extension://localhost",
        "http://[bad",
    ],
)
def test_other_pages_may_not(origin):
    assert not is_loopback_origin(origin)


def test_only_the_right_bearer_token_passes():
    assert has_token("Bearer abc", "abc")
    assert has_token("bearer abc ", "abc")
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer ab",
        "Basic abc",
        "abc",
        "Bearer abcd",
        "Bearer \udcff",
    ):
        assert not has_token(wrong, "abc")
